/* SPDX-License-Identifier: Apache-2.0
 *
 * Preloaded into a program that computes with OpenCL: kernels of a real driver that fail. The first
 * OPENCL_FAULT_TIMES of them in the process return what OPENCL_FAULT says.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef cl_int enqueue(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                       const size_t *, cl_uint, const cl_event *, cl_event *);

static atomic_int begun;

__attribute__((visibility("default"))) cl_int
clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                       const size_t *offset, const size_t *global, const size_t *local,
                       cl_uint count, const cl_event *events, cl_event *event)
{
    enqueue *real = (enqueue *)dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");

    if (begun++ < atoi(getenv("OPENCL_FAULT_TIMES")))
        return atoi(getenv("OPENCL_FAULT"));
    return real(queue, kernel, dimensions, offset, global, local, count, events, event);
}
