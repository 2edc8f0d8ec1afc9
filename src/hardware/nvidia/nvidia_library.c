/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/system/library.h"
#include "base/text/text.h"
#include "hardware/nvidia/nvidia.h"

#define LIBRARY "libnvidia-ml.so.1"

/* The vendor's data that the worker keeps from step to step. */
struct nvidia {
    struct nvml nvml;
    void *library;
    struct text gpus; /* the driver's GPUs when NVML was started */
    bool started;
    bool stops_after_step; /* it was started for one step only */
};

static const struct library_symbol symbols[] = {
    {"nvmlErrorString", offsetof(struct nvml, error_string), false},
#define SYMBOL(member, symbol, is_required, parameters) \
    {symbol, offsetof(struct nvml, member), is_required},
    NVML_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

int nvidia_error(const struct nvml *nvml, int number, struct berth_error *error, const char *format,
                 ...)
{
    const char *message = nvml->error_string == NULL ? NULL : nvml->error_string(number);
    struct text what = {0};
    va_list arguments;
    int code;

    va_start(arguments, format);
    text_append_list(&what, format, arguments);
    va_end(arguments);
    code = error_set(error,
                     number == NVML_ERROR_NO_PERMISSION ? BERTH_ERROR_PERMISSION : BERTH_ERROR_IO,
                     "%s: %.200s (NVML %d)", text_string(&what),
                     message == NULL ? "unknown error" : message, number);
    text_finish(&what);
    return code;
}

static int load_nvml(struct vendor_context *context, struct berth_error *error)
{
    const char *named = getenv("BERTH_NVML");
    bool is_named = named != NULL && *named != '\0';
    struct nvidia *nvidia;
    int code;

    /* The library of this machine knows nothing about a recorded machine. */
    if (context->root->recorded && !is_named)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "cannot load " LIBRARY ": a recorded machine needs BERTH_NVML");
    nvidia = calloc(1, sizeof(*nvidia));
    if (nvidia == NULL)
        return error_set_memory(error);
    code = library_open(is_named ? named : LIBRARY, symbols, COUNT(symbols), &nvidia->nvml,
                        &nvidia->library, error);
    if (code < 0)
        free(nvidia);
    else
        context->own = nvidia;
    return code;
}

/* Writes the GPUs as one line of text, which shows later whether they have changed. */
static int name_gpus(const struct nvidia_gpu_list *gpus, struct text *out)
{
    const struct nvidia_gpu *gpu;

    text_clear(out);
    vector_for_each (gpu, gpus) {
        text_append(out, pci_format(gpu->pci).text);
        text_append_char(out, ' ');
    }
    return text_failed(out) ? BERTH_ERROR_MEMORY : 0;
}

/* Starts NVML, without attaching to the GPUs if one sleeps: that would wake it. */
static int init_nvml(const struct nvml *nvml, bool is_any_asleep)
{
    return is_any_asleep && nvml->init_with_flags != NULL
               ? nvml->init_with_flags(NVML_INIT_FLAG_NO_ATTACH)
               : nvml->init();
}

static int refuse_start(const struct nvml *nvml, int number, struct berth_error *error)
{
    if (number == NVML_ERROR_DRIVER_NOT_LOADED)
        return error_set(error, BERTH_ERROR_NO_DEVICE,
                         "cannot start NVML: the driver is not loaded");
    if (number == NVML_ERROR_LIB_RM_VERSION_MISMATCH)
        return error_set(error, BERTH_ERROR_IO,
                         "cannot start NVML: it does not match the running driver (NVML %d): the "
                         "driver was updated, reboot to load the new one",
                         number);
    return nvidia_error(nvml, number, error, "cannot start NVML");
}

static int start_nvml(struct nvidia *nvidia, const struct nvidia_gpu_list *gpus,
                      struct berth_error *error)
{
    const struct nvidia_gpu *gpu;
    int number;

    if (name_gpus(gpus, &nvidia->gpus) < 0)
        return error_set_memory(error);
    nvidia->stops_after_step = false;
    vector_for_each (gpu, gpus)
        nvidia->stops_after_step |= gpu->may_sleep || gpu->asleep;
    number = init_nvml(&nvidia->nvml, nvidia_gpu_list_asleep(gpus) > 0);
    if (number != NVML_SUCCESS)
        return refuse_start(&nvidia->nvml, number, error);
    nvidia->started = true;
    return 0;
}

static void stop_nvml(struct nvidia *nvidia)
{
    if (nvidia->started)
        nvidia->nvml.shutdown();
    nvidia->started = false;
}

/* Returns whether NVML runs and sees these GPUs. It sees only the cards that existed when it
 * started. It is not restarted for each step: when no process has a GPU open, the driver shuts the
 * GPU down, and starting it takes seconds. */
static bool is_up_to_date(struct nvidia *nvidia, const struct nvidia_gpu_list *gpus)
{
    struct text now = {0};
    bool is_same;

    if (!nvidia->started)
        return false;
    if (gpus == NULL)
        return true;
    is_same =
        name_gpus(gpus, &now) == 0 && strcmp(text_string(&now), text_string(&nvidia->gpus)) == 0;
    text_finish(&now);
    return is_same;
}

/* Restarts NVML. Lists the GPUs first if the caller has not. */
static int restart_nvml(struct vendor_context *context, const struct nvidia_gpu_list *gpus,
                        struct berth_error *error)
{
    struct nvidia *nvidia = context->own;
    struct nvidia_gpu_list own = {0};
    int code = 0;

    stop_nvml(nvidia);
    if (gpus == NULL)
        code = nvidia_gpu_list_read(context->root, &own, error);
    if (code == 0)
        code = start_nvml(nvidia, gpus == NULL ? &own : gpus, error);
    nvidia_gpu_list_finish(&own);
    return code;
}

int nvidia_begin(struct vendor_context *context, const struct nvidia_gpu_list *gpus,
                 const struct nvml **ret_nvml, struct berth_error *error)
{
    int code = context->own == NULL ? load_nvml(context, error) : 0;

    if (code < 0 || context->own == NULL)
        return code;
    if (!is_up_to_date(context->own, gpus)) {
        code = restart_nvml(context, gpus, error);
        /* Unload it, so that the next attempt can find a repaired library. */
        if (code < 0) {
            nvidia_close(context);
            return code;
        }
    }
    *ret_nvml = &((struct nvidia *)context->own)->nvml;
    return 0;
}

void nvidia_end(struct vendor_context *context)
{
    struct nvidia *nvidia = context->own;

    if (nvidia != NULL && nvidia->stops_after_step)
        stop_nvml(nvidia);
}

void nvidia_close(struct vendor_context *context)
{
    struct nvidia *nvidia = context->own;

    if (nvidia == NULL)
        return;
    stop_nvml(nvidia);
    library_close(nvidia->library);
    text_finish(&nvidia->gpus);
    free(nvidia);
    context->own = NULL;
}
