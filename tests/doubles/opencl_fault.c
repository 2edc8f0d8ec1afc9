/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a program that computes with OpenCL. Makes kernels of a real driver fail: the
 * first OPENCL_FAULT_TIMES kernels of the process return the status in OPENCL_FAULT.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef cl_int enqueue(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                       const size_t *, cl_uint, const cl_event *, cl_event *);

static atomic_long begun;

static long number_of(const char *name)
{
    const char *text = getenv(name);

    return text == NULL ? 0 : strtol(text, NULL, 10);
}

__attribute__((visibility("default"))) cl_int
clEnqueueNDRangeKernel(cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
                       const size_t *global_work_offset, const size_t *global_work_size,
                       const size_t *local_work_size, cl_uint num_events_in_wait_list,
                       const cl_event *event_wait_list, cl_event *event)
{
    enqueue *real = (enqueue *)dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");

    if (begun++ < number_of("OPENCL_FAULT_TIMES"))
        return (cl_int)number_of("OPENCL_FAULT");
    return real(command_queue, kernel, work_dim, global_work_offset, global_work_size,
                local_work_size, num_events_in_wait_list, event_wait_list, event);
}
