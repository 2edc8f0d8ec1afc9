/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the kernel's facts about the GPUs of its nvidia driver.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "hardware/nvidia/nvidia.h"
#include "hardware/sysfs/locality.h"

void nvidia_gpu_list_finish(struct nvidia_gpu_list *list)
{
    struct nvidia_gpu *gpu;

    vector_for_each (gpu, list)
        free(gpu->path);
    vector_finish(list);
}

size_t nvidia_gpu_list_asleep(const struct nvidia_gpu_list *list)
{
    const struct nvidia_gpu *gpu;
    size_t count = 0;

    vector_for_each (gpu, list)
        count += gpu->asleep ? 1 : 0;
    return count;
}

/* Returns whether the device is a GPU. The driver's name is enough: a card's sound and USB
 * functions have other drivers, and the driver of NVSwitches is called nvidia-nvswitch. */
static bool has_nvidia_driver(const struct sysroot *root, const char *name)
{
    char *driver = sysroot_link_name(root, "/sys/bus/pci/devices/%s/driver", name);
    bool is_it = driver != NULL && strcmp(driver, "nvidia") == 0;

    free(driver);
    return is_it;
}

static bool may_sleep(const struct sysroot *root, const char *path)
{
    struct sysroot_value control;

    return sysroot_read(root, &control, "%s/power/control", path) == 0 &&
           strcmp(control.text, "auto") == 0;
}

static int add_gpu(const struct sysroot *root, const char *name, struct nvidia_gpu_list *list)
{
    struct pci_address pci;
    struct nvidia_gpu *gpu;

    if (pci_parse(name, &pci, NULL) < 0 || !has_nvidia_driver(root, name))
        return 0;
    gpu = vector_append(list);
    if (gpu == NULL)
        return BERTH_ERROR_MEMORY;
    gpu->pci = pci;
    gpu->path = sysroot_resolve(root, "/sys/bus/pci/devices/%s", name);
    if (gpu->path == NULL)
        list->count--; /* it has disappeared */
    else {
        gpu->asleep = locality_is_asleep(root, gpu->path);
        gpu->may_sleep = may_sleep(root, gpu->path);
    }
    return 0;
}

static int compare_gpus(const void *one, const void *other)
{
    return pci_compare(((const struct nvidia_gpu *)one)->pci,
                       ((const struct nvidia_gpu *)other)->pci);
}

int nvidia_gpu_list_read(const struct sysroot *root, struct nvidia_gpu_list *ret_list,
                         struct berth_error *error)
{
    struct nvidia_gpu_list list = {0};
    struct string_list names = {0};
    int code = 0;

    /* A machine without PCI has no such directory, which is not an error. */
    sysroot_list(root, &names, "/sys/bus/pci/devices");
    for (size_t i = 0; i < names.count && code == 0; i++)
        code = add_gpu(root, names.items[i], &list);
    string_list_finish(&names);
    if (code < 0) {
        nvidia_gpu_list_finish(&list);
        return error_set_memory(error);
    }
    if (list.count > 0)
        qsort(list.items, list.count, sizeof(*list.items), compare_gpus);
    *ret_list = list;
    return 0;
}

static int add_node(const struct sysroot *root, const char *node, struct string_list *nodes)
{
    return sysroot_has(root, "%s", node) ? string_list_append(nodes, node) : 0;
}

int nvidia_nodes(const struct sysroot *root, struct optional_number minor,
                 struct string_list *nodes, struct berth_error *error)
{
    static const char *const shared[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                         "/dev/nvidia-uvm-tools"};
    char own[32];
    int code = 0;

    if (minor.known) {
        snprintf(own, sizeof(own), "/dev/nvidia%u", (unsigned)minor.value);
        code = add_node(root, own, nodes);
    }
    for (size_t i = 0; i < COUNT(shared) && code == 0; i++)
        code = add_node(root, shared[i], nodes);
    return code < 0 ? error_set_memory(error) : 0;
}

/* Returns the printable value of a line like "Model: \t\t NVIDIA A100"; NULL if it is missing or if
 * memory ran out. */
static char *find_information(const struct sysroot_value *file, const char *key)
{
    size_t length = strlen(key);
    struct text raw = {0};
    struct text value = {0};

    for (const char *line = file->text; line != NULL;) {
        const char *end = strchrnul(line, '\n');

        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            line += length + 1;
            line += strspn(line, " \t");
            text_append_bytes(&raw, line, (size_t)(end - line));
            utf8_append_inert(&value, text_string(&raw));
            break;
        }
        line = *end == '\0' ? NULL : end + 1;
    }
    text_finish(&raw);
    if (value.length > 0)
        return text_detach(&value);
    text_finish(&value);
    return NULL;
}

static struct optional_number information_minor(const struct sysroot_value *file)
{
    char *digits = find_information(file, "Device Minor");
    struct optional_number minor = {0};

    minor.known = digits != NULL &&
                  quantity_parse_number(digits, 0, NVIDIA_MINOR_MAX, &minor.value, NULL) == 0;
    free(digits);
    return minor;
}

int nvidia_read_asleep(const struct sysroot *root, const char *path, struct device *device,
                       struct berth_error *error)
{
    struct sysroot_value file;
    int code;

    device->asleep = true;
    /* The driver answers this from memory, without waking the GPU. */
    sysroot_read(root, &file, "/proc/driver/nvidia/gpus/%s/information",
                 pci_format(device->pci).text);
    device->name = find_information(&file, "Model");
    device->uuid = find_information(&file, "GPU UUID");
    /* The UUID of a GPU that was never used is all question marks. */
    if (device->uuid != NULL && strchr(device->uuid, '?') != NULL) {
        free(device->uuid);
        device->uuid = NULL;
    }
    device->minor = information_minor(&file);
    code = nvidia_nodes(root, device->minor, &device->nodes, error);
    return code < 0 ? code : locality_read(root, path, device, error);
}
