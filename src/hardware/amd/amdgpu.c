/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the files of the amdgpu driver for a device that is awake. These files describe the whole
 * GPU. For a partition, only its temperature, kind, name and health are taken from them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "hardware/amd/amd.h"
#include "hardware/sysfs/hwmon.h"

/* Longer names are truncated. */
#define NAME_LENGTH_MAX 128

static int read_product_name(const struct sysroot *root, const char *path, struct device *device,
                             struct berth_error *error)
{
    struct sysroot_value value;
    struct text name = {0};

    if (sysroot_read(root, &value, "%s/product_name", path) < 0 || value.text[0] == '\0')
        return 0;
    if (strlen(value.text) > NAME_LENGTH_MAX)
        value.text[utf8_boundary(value.text, NAME_LENGTH_MAX)] = '\0';
    utf8_append_inert(&name, value.text);
    if (text_failed(&name))
        return error_set_memory(error);
    free(device->name);
    device->name = text_detach(&name);
    return 0;
}

/* Sets the UUID if KFD has none. */
static int read_unique_id(const struct sysroot *root, const char *path, struct device *device,
                          struct berth_error *error)
{
    struct optional_number unique_id;

    if (device->uuid != NULL)
        return 0;
    unique_id = sysroot_hexadecimal(root, "%s/unique_id", path);
    if (unique_id.known && unique_id.value != 0 &&
        asprintf(&device->uuid, "GPU-%016" PRIx64, unique_id.value) < 0) {
        device->uuid = NULL;
        return error_set_memory(error);
    }
    return 0;
}

/* Reads the memory. Returns whether the driver answers. */
static bool read_memory(const struct sysroot *root, const char *path, struct device *device)
{
    struct optional_number total = sysroot_number(root, "%s/mem_info_vram_total", path);
    struct optional_number used = sysroot_number(root, "%s/mem_info_vram_used", path);

    if (!total.known || total.value == 0 || total.value > INT64_MAX)
        return false;
    device->memory_total = total;
    if (used.known && used.value <= total.value)
        device->load.memory_free =
            load_figure_sampled((int64_t)(total.value - used.value), clock_read(CLOCK_REALTIME));
    return true;
}

static bool read_utilization(const struct sysroot *root, const char *path, struct device *device)
{
    struct optional_number percent = sysroot_number(root, "%s/gpu_busy_percent", path);

    if (!percent.known || percent.value > 100)
        return false;
    device->load.utilization =
        load_figure_sampled((int64_t)percent.value * 10, clock_read(CLOCK_REALTIME));
    return true;
}

static void read_sensors(const struct sysroot *root, const char *path, bool is_partition,
                         struct load *load)
{
    static const char *const names[] = {"amdgpu", NULL};
    static const char *const labels[] = {"edge", "junction", "sclk", NULL};
    struct load sensed = {0};

    hwmon_read(root, path, names, labels, &sensed);
    load->temperature = sensed.temperature;
    if (!is_partition) {
        load->power = sensed.power;
        load->frequency = sensed.frequency;
    }
}

/* The driver knows the maker of the memory only if the memory is on the board. */
static void read_kind(const struct sysroot *root, const char *path, struct device *device)
{
    struct sysroot_value maker;

    if (device->kind == DEVICE_KIND_UNKNOWN &&
        sysroot_read(root, &maker, "%s/mem_info_vram_vendor", path) == 0 && maker.text[0] != '\0' &&
        strcmp(maker.text, "unknown") != 0)
        device->kind = DEVICE_KIND_DISCRETE;
}

/* Returns the number of uncorrectable errors in one block of the GPU, from a line "ue: 3". */
static uint64_t count_uncorrected(struct sysroot_value *value)
{
    char *rest = value->text;
    uint64_t number = 0;
    char *line;

    while ((line = strsep(&rest, "\n")) != NULL)
        if (strncmp(line, "ue: ", 4) == 0)
            quantity_parse_number(line + 4, 0, UINT64_MAX, &number, NULL);
    return number;
}

static int read_health(const struct sysroot *root, const char *path, bool answers,
                       struct device *device, struct berth_error *error)
{
    static const char ending[] = "_err_count";
    struct string_list names = {0};
    struct text reason = {0};
    struct sysroot_value value;
    char **name;

    sysroot_list(root, &names, "%s/ras", path);
    vector_for_each (name, &names) {
        size_t length = strlen(*name);
        uint64_t count;

        if (length <= strlen(ending) || strcmp(*name + length - strlen(ending), ending) != 0 ||
            sysroot_read(root, &value, "%s/ras/%s", path, *name) < 0)
            continue;
        count = count_uncorrected(&value);
        (*name)[length - strlen(ending)] = '\0';
        utf8_make_plain(*name);
        if (count > 0 && reason.length < NAME_LENGTH_MAX)
            text_append_format(&reason, "%s%" PRIu64 " uncorrectable %s in %.32s",
                               reason.length > 0 ? ", " : "", count,
                               count == 1 ? "error" : "errors", *name);
    }
    string_list_finish(&names);
    if (reason.length > 0)
        device->health = HEALTH_SICK;
    else if (answers)
        device->health = HEALTH_OK;
    if (text_failed(&reason))
        return error_set_memory(error);
    device->health_reason = reason.length > 0 ? text_detach(&reason) : NULL;
    return 0;
}

/* Adds the processes with memory on this GPU. KFD has a file for each process and GPU, also for
 * GPUs that the process does not use. */
static int read_processes(const struct sysroot *root, uint64_t gpu_id, struct device *device,
                          struct berth_error *error)
{
    struct string_list names = {0};
    int code = 0;
    char **name;

    sysroot_list(root, &names, "/sys/class/kfd/kfd/proc");
    vector_for_each (name, &names) {
        struct device_process *process;
        struct optional_number memory;
        uint64_t pid;

        if (quantity_parse_number(*name, 1, INT32_MAX, &pid, NULL) < 0)
            continue;
        memory = sysroot_number(root, "/sys/class/kfd/kfd/proc/%s/vram_%" PRIu64, *name, gpu_id);
        if (!memory.known || memory.value == 0 || device->processes.count == DEVICE_PROCESSES_MAX)
            continue;
        process = device_process_find_or_add(&device->processes, pid);
        if (process == NULL) {
            code = error_set_memory(error);
            break;
        }
        process->memory = memory;
    }
    string_list_finish(&names);
    return code;
}

int amd_read_driver(const struct sysroot *root, const char *path, const struct amd_key *key,
                    struct device *device, struct berth_error *error)
{
    bool is_partition = key->parent[0] != '\0';
    bool answers = false;
    int code = 0;

    if (key->gpu_id.known)
        code = read_processes(root, key->gpu_id.value, device, error);
    if (code < 0 || path == NULL)
        return code;
    if (!is_partition) {
        code = read_unique_id(root, path, device, error);
        answers = read_memory(root, path, device);
        answers = read_utilization(root, path, device) || answers;
    } else {
        answers = sysroot_number(root, "%s/mem_info_vram_total", path).known;
    }
    read_sensors(root, path, is_partition, &device->load);
    read_kind(root, path, device);
    if (code == 0)
        code = read_product_name(root, path, device, error);
    if (code == 0)
        code = read_health(root, path, answers, device, error);
    return code;
}
