/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/proc_scan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"
#include "hardware/sysfs/locality.h"

#define NODE_DIRECTORY "/dev/dri/"

enum { NODES_MAX = 4096, NUMBER_MAX = 8 };

/* Returns whether the name is like renderD128 or card0. */
static bool is_node_name(const char *name)
{
    static const char *const beginnings[] = {"renderD", "card"};

    for (size_t i = 0; i < COUNT(beginnings); i++) {
        size_t length = strlen(beginnings[i]);
        size_t digits;

        if (strncmp(name, beginnings[i], length) != 0)
            continue;
        digits = strspn(name + length, "0123456789");
        return digits > 0 && digits <= NUMBER_MAX && name[length + digits] == '\0';
    }
    return false;
}

static bool has_node_name(const struct string_list *names)
{
    for (size_t i = 0; i < names->count; i++) {
        if (is_node_name(names->items[i]))
            return true;
    }
    return false;
}

bool device_files_are_absent(const struct sysroot *root)
{
    struct string_list names = {0};
    /* A recorded machine may be incomplete. */
    bool is_absent = !root->recorded && sysroot_has(root, "/sys/class");

    if (is_absent)
        is_absent = sysroot_list(root, &names, "/sys/class/drm") != -ENOMEM &&
                    sysroot_list(root, &names, "/dev/dri") != -ENOMEM && !has_node_name(&names);
    string_list_finish(&names);
    return is_absent;
}

/* Returns the name of the device file that a link leads to; NULL if it is another file. On a
 * recorded machine the link may lead to the file itself. */
static const char *node_name(const struct sysroot *root, const char *target)
{
    size_t prefix = strlen(root->prefix);

    if (root->recorded && strncmp(target, root->prefix, prefix) == 0)
        target += prefix;
    if (strncmp(target, NODE_DIRECTORY, strlen(NODE_DIRECTORY)) != 0)
        return NULL;
    target += strlen(NODE_DIRECTORY);
    return is_node_name(target) ? target : NULL;
}

static void read_node(struct device_file *node, const struct sysroot *root)
{
    char path[PATH_MAX];
    struct stat status;
    char *driver;

    node->path = sysroot_resolve(root, "/sys/class/drm/%s/device", node->name);
    if (node->path != NULL)
        node->pci = locality_pci_of(node->path, NULL);
    if (snprintf(path, sizeof(path), "%s" NODE_DIRECTORY "%s", root->prefix, node->name) <
            (int)sizeof(path) &&
        stat(path, &status) == 0 && S_ISCHR(status.st_mode)) {
        node->is_there = true;
        node->number = status.st_rdev;
    }
    /* CUDA uses /dev/nvidia0 instead. */
    driver = sysroot_link_name(root, "/sys/class/drm/%s/device/driver", node->name);
    node->is_elsewhere = driver != NULL && strncmp(driver, "nvidia", strlen("nvidia")) == 0;
    free(driver);
}

static int get_by_name(struct device_file_list *list, const struct sysroot *root, const char *name,
                       struct device_file **ret_node)
{
    struct device_file *node;

    vector_for_each (node, list) {
        if (strcmp(node->name, name) == 0) {
            *ret_node = node;
            return 0;
        }
    }
    *ret_node = NULL;
    if (list->count >= NODES_MAX)
        return 0;
    node = vector_append(list);
    if (node == NULL)
        return BERTH_ERROR_MEMORY;
    memcpy(node->name, name, strlen(name) + 1);
    read_node(node, root);
    *ret_node = node;
    return 0;
}

int device_file_list_get(struct device_file_list *list, const struct sysroot *root,
                         const char *target, struct device_file **ret_node)
{
    const char *name = node_name(root, target);

    *ret_node = NULL;
    return name == NULL ? 0 : get_by_name(list, root, name, ret_node);
}

int device_file_list_add_present(struct device_file_list *list, const struct sysroot *root,
                                 struct proc_scan *scan)
{
    static const struct pci_address none = {0};
    struct string_list names = {0};
    int code = sysroot_list(root, &names, "/dev/dri") == -ENOMEM ? BERTH_ERROR_MEMORY : 0;

    for (size_t i = 0; code == 0 && i < names.count; i++) {
        struct device_file *node = NULL;
        size_t place;

        if (is_node_name(names.items[i]))
            code = get_by_name(list, root, names.items[i], &node);
        if (node != NULL)
            code = device_file_add_device(node, none, scan, &place);
    }
    string_list_finish(&names);
    return code;
}

void device_file_list_finish(struct device_file_list *list)
{
    struct device_file *node;

    vector_for_each (node, list)
        free(node->path);
    vector_finish(list);
}

static bool share_node(const struct string_list *one, const struct string_list *other)
{
    for (size_t i = 0; i < one->count; i++) {
        for (size_t j = 0; j < other->count; j++) {
            if (strcmp(one->items[i], other->items[j]) == 0)
                return true;
        }
    }
    return false;
}

static bool is_same_device(const struct used_device *one, const struct used_device *other)
{
    if (one->path != NULL && other->path != NULL)
        return strcmp(one->path, other->path) == 0;
    if (one->pci.known && other->pci.known)
        return pci_compare(one->pci, other->pci) == 0;
    return share_node(&one->nodes, &other->nodes);
}

size_t proc_scan_find_device(const struct proc_scan *scan, const struct used_device *device)
{
    size_t place = 0;

    while (place < scan->devices.count && !is_same_device(device, &scan->devices.items[place]))
        place++;
    return place;
}

/* Adds facts about a device that another of its files has shown. */
static int complete_device(struct used_device *device, const struct used_device *known)
{
    if (!device->pci.known)
        device->pci = known->pci;
    if (device->path == NULL && known->path != NULL) {
        device->path = strdup(known->path);
        if (device->path == NULL)
            return BERTH_ERROR_MEMORY;
    }
    if (known->nodes.count == 0 || share_node(&device->nodes, &known->nodes))
        return 0;
    return string_list_append(&device->nodes, known->nodes.items[0]);
}

int device_file_add_device(const struct device_file *node, struct pci_address pci,
                           struct proc_scan *scan, size_t *ret_place)
{
    /* The file that has this name here is not the one that was opened. */
    bool is_misnamed = pci.known && node->pci.known && pci_compare(pci, node->pci) != 0;
    bool has_name = !is_misnamed && *node->name != '\0';
    char file[sizeof(NODE_DIRECTORY) + DEVICE_FILE_NAME_SIZE];
    char *files[] = {file};
    struct used_device known = {
        .pci = pci.known ? pci : node->pci,
        .path = is_misnamed ? NULL : node->path,
        .nodes = {.items = files, .count = has_name ? COUNT(files) : 0},
    };
    size_t place;

    snprintf(file, sizeof(file), NODE_DIRECTORY "%s", node->name);
    place = proc_scan_find_device(scan, &known);
    if (place == scan->devices.count && vector_append(&scan->devices) == NULL)
        return BERTH_ERROR_MEMORY;
    scan->devices.items[place].is_elsewhere |= !is_misnamed && node->is_elsewhere;
    *ret_place = place;
    return complete_device(&scan->devices.items[place], &known);
}
