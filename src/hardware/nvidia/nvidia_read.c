/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads one GPU with NVML. Every answer may be missing, and impossible values are ignored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/utf8.h"
#include "hardware/nvidia/nvidia.h"
#include "hardware/sysfs/locality.h"

/* Values beyond these limits are wrong. */
#define DEGREES_MAX    300
#define MILLIWATTS_MAX 100000000
#define MEGAHERTZ_MAX  100000
#define CAPABILITY_MAX 999
#define PERCENT_MAX    100
#define DEGREES_MIN    (-100)

bool nvidia_answered(struct nvidia_query *query, int code)
{
    if (code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED)
        query->lost = code;
    return code == NVML_SUCCESS;
}

struct pci_address nvidia_pci(const struct nvml_pci_info *info)
{
    if (info->bus > 0xff || info->device > 31)
        return (struct pci_address){0};
    /* NVML reports no function: a GPU is always function 0 of its card. */
    return (struct pci_address){
        .known = true,
        .domain = info->domain,
        .bus = (uint8_t)info->bus,
        .device = (uint8_t)info->device,
    };
}

/* Copies a string of the library, which may lack its terminator or be invalid UTF-8. Replaces
 * *ret_string unless it is empty. */
static int copy_string(const char *bytes, size_t size, char **ret_string, struct berth_error *error)
{
    struct text raw = {0};
    struct text inert = {0};
    char *string;

    text_append_bytes(&raw, bytes, strnlen(bytes, size));
    utf8_append_inert(&inert, text_string(&raw));
    string = text_failed(&raw) || text_failed(&inert) ? NULL : strdup(text_string(&inert));
    text_finish(&raw);
    text_finish(&inert);
    if (string == NULL)
        return error_set_memory(error);
    if (*string == '\0') {
        free(string);
        return 0;
    }
    free(*ret_string);
    *ret_string = string;
    return 0;
}

/* Gets the total and the free memory. Returns NVML_SUCCESS or another return code. */
static int query_memory(struct nvidia_query *query, uint64_t *ret_total, uint64_t *ret_free)
{
    const struct nvml *nvml = query->nvml;
    struct nvml_memory_v2 newer = {.version = NVML_MEMORY_V2};
    struct nvml_memory memory = {0};
    int code = nvml->memory_v2 == NULL ? NVML_ERROR_FUNCTION_NOT_FOUND
                                       : nvml->memory_v2(query->handle, &newer);

    memory = (struct nvml_memory){.total = newer.total, .free = newer.free};
    if (code != NVML_SUCCESS && nvml->memory != NULL)
        code = nvml->memory(query->handle, &memory);
    nvidia_answered(query, code);
    *ret_total = memory.total;
    *ret_free = memory.free;
    return code;
}

/* Returns whether the GPU has no BAR1 window. This is true for GPUs without memory of their own
 * (GB10, Tegra). */
static bool has_no_window(struct nvidia_query *query)
{
    struct nvml_bar1_memory window = {0};

    return query->nvml->bar1_memory != NULL &&
           query->nvml->bar1_memory(query->handle, &window) == NVML_ERROR_NOT_SUPPORTED;
}

static void read_memory(struct nvidia_query *query)
{
    struct device *device = query->device;
    uint64_t total = 0;
    uint64_t available = 0;
    int code;

    if (query->lost != 0)
        return;
    code = query_memory(query, &total, &available);
    if (code == NVML_ERROR_NOT_SUPPORTED && has_no_window(query))
        device->kind = DEVICE_KIND_INTEGRATED;
    if (code != NVML_SUCCESS || total == 0 || total > NVIDIA_MEMORY_MAX)
        return;
    device->kind = DEVICE_KIND_DISCRETE;
    device->memory_total = optional_number_of(total);
    if (available <= total)
        device->load.memory_free =
            load_figure_sampled((int64_t)available, clock_read(CLOCK_REALTIME));
}

int nvidia_read_identity(struct nvidia_query *query, struct berth_error *error)
{
    char name[NVML_NAME_SIZE] = "";
    char uuid[NVML_UUID_SIZE] = "";
    int code = 0;

    if (nvidia_call(query, name, name, sizeof(name)))
        code = copy_string(name, sizeof(name), &query->device->name, error);
    if (code == 0 && nvidia_call(query, uuid, uuid, sizeof(uuid)))
        code = copy_string(uuid, sizeof(uuid), &query->device->uuid, error);
    if (code == 0)
        read_memory(query);
    return code;
}

static void read_numbers(struct nvidia_query *query)
{
    struct device *device = query->device;
    unsigned minor = 0;
    int cap_major = 0;
    int cap_minor = 0;

    if (nvidia_call(query, minor, &minor) && minor <= NVIDIA_MINOR_MAX)
        device->minor = optional_number_of(minor);
    if (nvidia_call(query, capability, &cap_major, &cap_minor) && cap_major > 0 &&
        cap_major <= CAPABILITY_MAX && cap_minor >= 0 && cap_minor <= CAPABILITY_MAX)
        device->cap = (struct capability){true, (uint16_t)cap_major, (uint16_t)cap_minor};
}

static void read_temperature(struct nvidia_query *query, struct figure *figure)
{
    struct nvml_temperature newer = {.version = NVML_TEMPERATURE_V1,
                                     .sensor = NVML_TEMPERATURE_GPU};
    unsigned degrees = 0;

    /* Only the newer call can report temperatures below zero; most libraries have only the older
     * one. */
    if (nvidia_call(query, temperature_v, &newer)) {
        if (newer.degrees < DEGREES_MIN || newer.degrees > DEGREES_MAX)
            return;
        *figure = load_figure_sampled(newer.degrees * INT64_C(1000), clock_read(CLOCK_REALTIME));
    } else if (nvidia_call(query, temperature, NVML_TEMPERATURE_GPU, &degrees) &&
               degrees <= DEGREES_MAX)
        *figure = load_figure_sampled(degrees * INT64_C(1000), clock_read(CLOCK_REALTIME));
}

static void read_load(struct nvidia_query *query)
{
    struct load *load = &query->device->load;
    struct nvml_utilization busy = {0};
    unsigned milliwatts = 0;
    unsigned megahertz = 0;

    if (nvidia_call(query, utilization, &busy) && busy.gpu <= PERCENT_MAX)
        load->utilization = load_figure_sampled(busy.gpu * INT64_C(10), clock_read(CLOCK_REALTIME));
    read_temperature(query, &load->temperature);
    if (nvidia_call(query, power, &milliwatts) && milliwatts <= MILLIWATTS_MAX)
        load->power = load_figure_sampled(milliwatts, clock_read(CLOCK_REALTIME));
    if ((nvidia_call(query, clock, NVML_CLOCK_SM, &megahertz) ||
         nvidia_call(query, clock, NVML_CLOCK_GRAPHICS, &megahertz)) &&
        megahertz <= MEGAHERTZ_MAX)
        load->frequency =
            load_figure_sampled(megahertz * INT64_C(1000000), clock_read(CLOCK_REALTIME));
}

int nvidia_read_gpu(struct nvidia_query *query, const char *path, struct berth_error *error)
{
    int code = nvidia_read_identity(query, error);

    if (code < 0)
        return code;
    read_numbers(query);
    read_load(query);
    code = nvidia_nodes(query->root, query->device->minor, &query->device->nodes, error);
    return code < 0 || path == NULL ? code : locality_read(query->root, path, query->device, error);
}

static int set_sick(struct device *device, struct berth_error *error, const char *reason)
{
    device->health = HEALTH_SICK;
    device->health_reason = strdup(reason);
    return device->health_reason == NULL ? error_set_memory(error) : 0;
}

/* Returns why the memory is unreliable; NULL: it is reliable. A reset completes pending repairs,
 * and until then the bad cells are in use. Corrected errors do not count. Errors from earlier loads
 * of the driver (aggregate) were handled when it was loaded again. */
static const char *memory_failure(struct nvidia_query *query, char *text, size_t size)
{
    unsigned corrected = 0;
    unsigned uncorrected = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    int retired_pending = 0;
    unsigned long long errors = 0;

    if (nvidia_call(query, remapped_rows, &corrected, &uncorrected, &pending, &failed)) {
        if (failed != 0)
            return "bad memory rows could not be remapped: it needs service";
        if (pending != 0)
            return "bad memory rows must be remapped: it needs a reset";
    }
    if (nvidia_call(query, retired_pending, &retired_pending) &&
        retired_pending == NVML_FEATURE_ENABLED)
        return "bad memory pages must be retired: it needs a reset";
    if (nvidia_call(query, ecc_errors, NVML_MEMORY_ERROR_UNCORRECTED, NVML_VOLATILE_ECC, &errors) &&
        errors > 0 && errors != NVML_NOT_AVAILABLE) {
        snprintf(text, size,
                 "%llu uncorrectable memory error%s since the driver was loaded: it needs a reset",
                 errors, errors == 1 ? "" : "s");
        return text;
    }
    return NULL;
}

int nvidia_read_health(struct nvidia_query *query, struct berth_error *error)
{
    char text[128];
    const char *failure = memory_failure(query, text, sizeof(text));

    if (query->lost == NVML_ERROR_GPU_IS_LOST)
        failure = "lost: it has fallen off the bus or does not answer";
    else if (query->lost == NVML_ERROR_RESET_REQUIRED)
        failure = "needs a reset before it can be used again";
    if (failure != NULL)
        return set_sick(query->device, error, failure);
    query->device->health = HEALTH_OK;
    return 0;
}
