/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting and stopping the NVML double; its handles, its log and its faults.
 */
#include "doubles/nvml_calls.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A handle is the address of one of these. */
struct nvml_device_handle {
    char unused;
};

static struct nvml_device_handle handles[MACHINE_GPUS][1 + MACHINE_INSTANCES];
static bool attached[MACHINE_GPUS];
static unsigned started;

/* Writes a line with the function and the GPU to the file that NVML_DOUBLE_LOG names. */
static void write_log(const char *what, int gpu)
{
    const char *path = getenv("NVML_DOUBLE_LOG");
    int descriptor =
        path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    char line[128];
    int length = gpu < 0 ? snprintf(line, sizeof(line), "%s\n", what)
                         : snprintf(line, sizeof(line), "%s %d\n", what, gpu);

    if (descriptor < 0)
        return;
    if (write(descriptor, line, (size_t)length) != length)
        abort();
    close(descriptor);
}

static const struct fault *find_fault(const struct fault_list *faults, const char *function)
{
    for (unsigned i = 0; i < faults->count; i++) {
        if (strcmp(faults->items[i].function, function) == 0)
            return &faults->items[i];
    }
    return NULL;
}

static int do_fault(const struct fault *fault, struct call *call)
{
    if (fault == NULL)
        return NVML_SUCCESS;
    call->lies = fault->action == ACTION_LIE;
    if (fault->action == ACTION_CRASH) {
        signal(SIGSEGV, SIG_DFL); /* sanitizers would turn it into an exit */
        raise(SIGSEGV);
    }
    while (fault->action == ACTION_HANG)
        pause();
    return fault->code;
}

int call_begin(const char *function, struct call *ret_call)
{
    *ret_call = (struct call){.machine = machine_now()};
    write_log(function, -1);
    if (started == 0)
        return NVML_ERROR_UNINITIALIZED;
    return do_fault(find_fault(&ret_call->machine->faults, function), ret_call);
}

nvml_device call_handle(unsigned gpu, int instance)
{
    return &handles[gpu][1 + instance];
}

void call_attach(unsigned gpu)
{
    if (!attached[gpu])
        write_log("attach", (int)gpu);
    attached[gpu] = true;
}

/* Handles stay valid while the machine changes, as long as it has such a device. */
bool call_find_unit(nvml_device device, struct call *call)
{
    size_t place = (size_t)((char *)device - (char *)handles);
    struct machine *machine = call->machine;

    if ((char *)device < (char *)handles || place >= sizeof(handles))
        return false;
    call->gpu = (unsigned)(place / sizeof(handles[0]));
    place %= sizeof(handles[0]);
    call->is_instance = place > 0;
    call->unit = place == 0 ? &machine->gpus[call->gpu] : &machine->instances[call->gpu][place - 1];
    return call->unit->known;
}

int call_begin_device(const char *function, nvml_device device, struct call *ret_call)
{
    struct call call = {.machine = machine_now()};
    const struct fault *fault;
    bool is_known = call_find_unit(device, &call);
    int code;

    write_log(function, is_known ? (int)call.gpu : -1);
    *ret_call = call;
    if (started == 0)
        return NVML_ERROR_UNINITIALIZED;
    if (!is_known)
        return NVML_ERROR_INVALID_ARGUMENT;
    call_attach(call.gpu);
    fault = find_fault(&call.unit->faults, function);
    if (fault == NULL)
        fault = find_fault(&call.machine->faults, function);
    code = do_fault(fault, &call);
    *ret_call = call;
    return code;
}

int call_fact(const char *function, nvml_device device, enum fact_name name,
              unsigned *const *numbers, unsigned count)
{
    struct call call;
    int code = call_begin_device(function, device, &call);
    const struct fact *fact = code == NVML_SUCCESS ? &call.unit->facts[name] : NULL;

    if (code != NVML_SUCCESS)
        return code;
    for (unsigned i = 0; i < count; i++) {
        if (numbers[i] == NULL)
            return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (!fact->known && !call.lies)
        return NVML_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; i < count; i++)
        *numbers[i] = call.lies ? UINT32_MAX : (unsigned)fact->values[i];
    return NVML_SUCCESS;
}

static int start(const char *function, bool attaches)
{
    struct machine *machine = machine_now();
    struct call call = {.machine = machine};
    int code;

    write_log(function, -1);
    code = do_fault(find_fault(&machine->faults, function), &call);
    if (code == NVML_SUCCESS)
        code = machine->init;
    if (code != NVML_SUCCESS)
        return code;
    started++;
    for (unsigned i = 0; i < machine->gpus_count && attaches; i++)
        call_attach(i);
    return NVML_SUCCESS;
}

EXPORTED int nvmlInit_v2(void)
{
    return start(__func__, true);
}

EXPORTED int nvmlInit(void)
{
    return start(__func__, true);
}

EXPORTED int nvmlInitWithFlags(unsigned flags)
{
    return start(__func__, (flags & NVML_INIT_FLAG_NO_ATTACH) == 0);
}

EXPORTED int nvmlShutdown(void)
{
    struct call call;
    int code = call_begin(__func__, &call);

    if (code != NVML_SUCCESS)
        return code;
    if (--started == 0)
        memset(attached, 0, sizeof(attached));
    return NVML_SUCCESS;
}

EXPORTED const char *nvmlErrorString(int code)
{
    static const struct {
        int code;
        const char *words;
    } all[] = {
        {NVML_SUCCESS, "Success"},
        {NVML_ERROR_UNINITIALIZED, "Uninitialized"},
        {NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument"},
        {NVML_ERROR_NOT_SUPPORTED, "Not Supported"},
        {NVML_ERROR_NO_PERMISSION, "Insufficient Permissions"},
        {NVML_ERROR_NOT_FOUND, "Not Found"},
        {NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size"},
        {NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found"},
        {NVML_ERROR_GPU_IS_LOST, "GPU is lost"},
        {NVML_ERROR_RESET_REQUIRED, "GPU requires reset"},
        {NVML_ERROR_LIB_RM_VERSION_MISMATCH, "Driver/library version mismatch"},
        {NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch"},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i].code == code)
            return all[i].words;
    }
    return "Unknown Error";
}
