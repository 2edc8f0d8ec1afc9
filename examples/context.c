/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes on leased GPUs with OpenCL: one thread for each device, and recovery from faults.
 *
 *     cc -o context context.c $(pkg-config --cflags --libs berth) -lOpenCL -pthread
 *     ./context 2                                                      # this machine's GPUs
 *     berth run -n 2 --inventory dgx-a100.yaml -- ./context 2          # no GPU: parts of the CPU
 *
 * berth_contexts_of_lease finds the devices of a lease in OpenCL, in whatever order OpenCL lists
 * them, and creates a context on each. The contexts end with the lease. Exit codes: 0, everything
 * was computed; 1, something failed; 120, there are no such devices.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <berth/berth.h>
#include <berth/context.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS = 1 << 20, ATTEMPTS = 3, NO_DEVICE = 120 };

static const char source[] = "kernel void scale(global float *numbers, float factor)\n"
                             "{\n"
                             "    numbers[get_global_id(0)] *= factor;\n"
                             "}\n";

struct worker {
    pthread_t thread;
    struct berth_context context;
    struct berth_context_info info;
    size_t wrong; /* elements */
    bool is_done;
};

static struct berth_pool *pool;
static bool has_failed;

static void complain(const struct berth_error *error)
{
    fprintf(stderr, "context: %s\n", error->message);
}

/* ---- OpenCL, without berth ---- */

/* The OpenCL objects of a computation; they are released in any case. */
struct computation {
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem memory;
};

static cl_int build(struct computation *in, cl_context context, cl_device_id device)
{
    const char *text = source;
    cl_int status;

    in->queue = clCreateCommandQueue(context, device, 0, &status);
    if (status == CL_SUCCESS)
        in->program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
    if (status == CL_SUCCESS)
        status = clBuildProgram(in->program, 1, &device, "", NULL, NULL);
    if (status == CL_SUCCESS)
        in->kernel = clCreateKernel(in->program, "scale", &status);
    if (status == CL_SUCCESS)
        in->memory =
            clCreateBuffer(context, CL_MEM_READ_WRITE, ELEMENTS * sizeof(float), NULL, &status);
    return status;
}

static cl_int run(struct computation *in, float *numbers, float factor)
{
    const size_t bytes = ELEMENTS * sizeof(float);
    const size_t elements = ELEMENTS;
    cl_int status = clSetKernelArg(in->kernel, 0, sizeof(in->memory), &in->memory);

    if (status == CL_SUCCESS)
        status = clSetKernelArg(in->kernel, 1, sizeof(factor), &factor);
    if (status == CL_SUCCESS)
        status =
            clEnqueueWriteBuffer(in->queue, in->memory, CL_TRUE, 0, bytes, numbers, 0, NULL, NULL);
    if (status == CL_SUCCESS)
        status =
            clEnqueueNDRangeKernel(in->queue, in->kernel, 1, NULL, &elements, NULL, 0, NULL, NULL);
    /* Errors of the kernel appear here, when the program waits for the queue. */
    if (status == CL_SUCCESS)
        status =
            clEnqueueReadBuffer(in->queue, in->memory, CL_TRUE, 0, bytes, numbers, 0, NULL, NULL);
    return status;
}

static void finish(struct computation *in)
{
    if (in->memory != NULL)
        clReleaseMemObject(in->memory);
    if (in->kernel != NULL)
        clReleaseKernel(in->kernel);
    if (in->program != NULL)
        clReleaseProgram(in->program);
    if (in->queue != NULL)
        clReleaseCommandQueue(in->queue);
}

/* Multiplies 0, 1, 2 and so on by 3, and counts wrong results. */
static cl_int compute(cl_context context, cl_device_id device, size_t *ret_wrong)
{
    struct computation computation = {0};
    float *numbers = malloc(ELEMENTS * sizeof(*numbers));
    cl_int status;

    if (numbers == NULL)
        return CL_OUT_OF_HOST_MEMORY;
    for (int i = 0; i < ELEMENTS; i++)
        numbers[i] = (float)i;
    status = build(&computation, context, device);
    if (status == CL_SUCCESS)
        status = run(&computation, numbers, 3);
    *ret_wrong = 0;
    for (int i = 0; i < ELEMENTS; i++)
        *ret_wrong += numbers[i] != 3 * (float)i;
    finish(&computation);
    free(numbers);
    return status;
}

/* ---- One device ---- */

/* Reports the OpenCL error to berth. Returns whether to try again, perhaps in a new context. */
static bool recover(struct worker *worker, cl_int status)
{
    struct berth_error error = BERTH_ERROR_INIT;
    enum berth_fault fault;
    int code = berth_context_report(pool, worker->context, status, &fault, &error);

    if (code == 0 && fault == BERTH_FAULT_REBUILD)
        code = berth_context_rebuild(pool, worker->context, &worker->context, &error);
    if (code < 0) {
        complain(&error);
        return false;
    }
    fprintf(stderr, "context: OpenCL says %d: %s\n", status,
            fault == BERTH_FAULT_NONE      ? "a mistake of this program"
            : fault == BERTH_FAULT_RETRY   ? "once more"
            : fault == BERTH_FAULT_REBUILD ? "once more, in a new context"
                                           : "the device is of no use any more");
    return fault == BERTH_FAULT_RETRY || fault == BERTH_FAULT_REBUILD;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct berth_context_info *info = &worker->info;
    struct berth_error error = BERTH_ERROR_INIT;
    cl_int status;

    for (int i = 0; i < ATTEMPTS; i++) {
        /* Read the pointers again each time: a rebuilt context has others. */
        info->size = sizeof(*info);
        if (berth_context_info(pool, worker->context, info, &error) < 0) {
            complain(&error);
            return NULL;
        }
        status = compute(info->context, info->device, &worker->wrong);
        worker->is_done = status == CL_SUCCESS;
        if (worker->is_done || !recover(worker, status))
            return NULL;
    }
    return NULL;
}

/* "nvidia0: NVIDIA A100-SXM4-80GB: 1048576 elements, OK" */
static void print_result(const struct worker *worker)
{
    static const char *const vendors[] = {"nvidia", "amd", "intel", "apple", "dri"};
    const struct berth_context_info *info = &worker->info;
    char name[128] = "";

    clGetDeviceInfo(info->device, CL_DEVICE_NAME, sizeof(name), name, NULL);
    printf("%s%u", vendors[info->vendor], info->index);
    if (info->mig != BERTH_NO_MIG)
        printf(".%u", info->mig);
    printf("%s: %s: %d elements, %s\n", info->stands_in ? " (a part of the CPU in its place)" : "",
           name, ELEMENTS, worker->wrong == 0 ? "OK" : "WRONG");
}

/* ---- All devices ---- */

static void start(struct worker *worker)
{
    if (pthread_create(&worker->thread, NULL, work, worker) != 0)
        abort();
}

static int compute_on(struct berth_context_set set, struct berth_error *error)
{
    int count = berth_contexts_count(pool, set, error);
    struct worker *workers;
    int started = 0;
    int code = 0;

    if (count < 0)
        return count;
    workers = calloc((size_t)count, sizeof(*workers));
    if (workers == NULL)
        abort();
    while (code == 0 && started < count) {
        struct worker *worker = &workers[started];

        code = berth_contexts_at(pool, set, (size_t)started, &worker->context, error);
        if (code == 0) {
            start(worker);
            started++;
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].is_done)
            print_result(&workers[i]);
        if (!workers[i].is_done || workers[i].wrong > 0)
            has_failed = true;
    }
    free(workers);
    return code;
}

static int compute_on_lease(struct berth_lease lease, struct berth_error *error)
{
    const struct berth_context_options options = {
        .size = sizeof(options),
        .api = BERTH_API_OPENCL,
        .stand_in = true, /* for devices of an inventory, never for the hardware */
    };
    struct berth_context_set set;
    int code = berth_contexts_of_lease(pool, lease, &options, &set, error);

    return code < 0 ? code : compute_on(set, error);
}

static int claim_and_compute(const char *gpus, struct berth_error *error)
{
    struct berth_request *request = NULL;
    struct berth_lease lease;
    int code = berth_request_create(&request, error);

    if (code == 0)
        code = berth_request_set(request, "gpus", gpus, error);
    if (code == 0)
        code = berth_claim(pool, request, BERTH_FOR_EVER, &lease, error);
    if (code == 0) {
        code = compute_on_lease(lease, error);
        berth_release(pool, lease, NULL); /* ends the contexts, then releases the devices */
    }
    berth_request_destroy(request);
    return code;
}

int main(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = berth_pool_open(NULL, &pool, &error);

    if (code == 0)
        code = claim_and_compute(argc > 1 ? argv[1] : "1", &error);
    if (code < 0)
        complain(&error);
    berth_pool_close(pool);
    if (code == BERTH_ERROR_NO_DEVICE || code == BERTH_ERROR_IMPOSSIBLE)
        return NO_DEVICE;
    return code < 0 || has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
