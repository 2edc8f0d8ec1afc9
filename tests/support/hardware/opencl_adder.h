/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a kernel that adds numbers, on any OpenCL context.
 */
#ifndef TESTS_OPENCL_ADDER_H
#define TESTS_OPENCL_ADDER_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <stddef.h>
#include <unistd.h>

#include "support/unit.h"

/* Sanitizers report errors inside PoCL and LLVM. */
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OPENCL_IS_SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OPENCL_IS_SANITIZED
#endif

/* Skips the test if a real OpenCL cannot be used. */
static inline void opencl_need(void)
{
#ifdef OPENCL_IS_SANITIZED
    print_message("skip: sanitizers report errors inside PoCL and LLVM\n");
    skip();
#endif
    if (access("/sys/devices/system/cpu", F_OK) < 0) {
        print_message("skip: PoCL ends the program if there is no /sys\n");
        skip();
    }
}

enum { ADDER_ELEMENTS = 10000 };

static const char adder_source[] = "kernel void add(global const int *a, global const int *b,\n"
                                   "                global int *sum)\n"
                                   "{\n"
                                   "    size_t i = get_global_id(0);\n"
                                   "    sum[i] = a[i] + b[i];\n"
                                   "}\n";

struct adder {
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem memory[3];
};

/* Builds the kernel. Returns the first status that is not success, like adder_run(). */
static inline cl_int adder_start(struct adder *adder, cl_context context, cl_device_id device)
{
    const char *text = adder_source;
    cl_int status;

    adder->context = context;
    adder->queue = clCreateCommandQueue(adder->context, device, 0, &status);
    if (status == CL_SUCCESS)
        adder->program = clCreateProgramWithSource(adder->context, 1, &text, NULL, &status);
    if (status == CL_SUCCESS)
        status = clBuildProgram(adder->program, 1, &device, "", NULL, NULL);
    if (status == CL_SUCCESS)
        adder->kernel = clCreateKernel(adder->program, "add", &status);
    for (int i = 0; i < 3 && status == CL_SUCCESS; i++)
        adder->memory[i] = clCreateBuffer(adder->context, CL_MEM_READ_WRITE,
                                          ADDER_ELEMENTS * sizeof(cl_int), NULL, &status);
    for (cl_uint i = 0; i < 3 && status == CL_SUCCESS; i++)
        status = clSetKernelArg(adder->kernel, i, sizeof(cl_mem), &adder->memory[i]);
    return status;
}

/* Releases everything, also after a failed start. */
static inline void adder_finish(struct adder *adder)
{
    for (int i = 0; i < 3; i++)
        clReleaseMemObject(adder->memory[i]);
    clReleaseKernel(adder->kernel);
    clReleaseProgram(adder->program);
    clReleaseCommandQueue(adder->queue);
}

/* Adds numbers that depend on the seed. *ret_wrong is the number of wrong sums. */
static inline cl_int adder_run(struct adder *adder, int seed, size_t *ret_wrong)
{
    const size_t elements = ADDER_ELEMENTS;
    static _Thread_local cl_int numbers[3][ADDER_ELEMENTS];
    cl_int status = CL_SUCCESS;

    for (int i = 0; i < ADDER_ELEMENTS; i++) {
        numbers[0][i] = seed * i;
        numbers[1][i] = seed + i;
        numbers[2][i] = -1;
    }
    for (int i = 0; i < 3 && status == CL_SUCCESS; i++)
        status = clEnqueueWriteBuffer(adder->queue, adder->memory[i], CL_TRUE, 0,
                                      sizeof(numbers[i]), numbers[i], 0, NULL, NULL);
    if (status == CL_SUCCESS)
        status = clEnqueueNDRangeKernel(adder->queue, adder->kernel, 1, NULL, &elements, NULL, 0,
                                        NULL, NULL);
    if (status == CL_SUCCESS)
        status = clEnqueueReadBuffer(adder->queue, adder->memory[2], CL_TRUE, 0, sizeof(numbers[2]),
                                     numbers[2], 0, NULL, NULL);
    *ret_wrong = 0;
    for (int i = 0; i < ADDER_ELEMENTS; i++)
        *ret_wrong += numbers[2][i] != seed * i + seed + i;
    return status;
}

#endif
