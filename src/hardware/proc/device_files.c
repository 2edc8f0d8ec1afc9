/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/device_files.h"

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

/* renderD128 or card0. */
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

bool node_list_is_pointless(const struct root *root)
{
    struct string_list names = {0};
    /* A recorded machine may be incomplete. */
    bool is_pointless = !root->recorded && root_has(root, "/sys/class");

    if (is_pointless)
        is_pointless = root_list(root, &names, "/sys/class/drm") != -ENOMEM &&
                       root_list(root, &names, "/dev/dri") != -ENOMEM && !has_node_name(&names);
    string_list_finish(&names);
    return is_pointless;
}

/* The name of the device file that a link leads to; NULL: it is none. In a recorded machine the
 * link may lead to the file itself. */
static const char *node_name(const struct root *root, const char *target)
{
    size_t prefix = strlen(root->prefix);

    if (root->recorded && strncmp(target, root->prefix, prefix) == 0)
        target += prefix;
    if (strncmp(target, NODE_DIRECTORY, strlen(NODE_DIRECTORY)) != 0)
        return NULL;
    target += strlen(NODE_DIRECTORY);
    return is_node_name(target) ? target : NULL;
}

static void look_at_node(struct node *node, const struct root *root)
{
    char path[PATH_MAX];
    struct stat status;
    char *driver;

    node->path = root_resolve(root, "/sys/class/drm/%s/device", node->name);
    if (node->path != NULL)
        node->pci = locality_pci_of(node->path, NULL);
    if (snprintf(path, sizeof(path), "%s" NODE_DIRECTORY "%s", root->prefix, node->name) <
            (int)sizeof(path) &&
        stat(path, &status) == 0 && S_ISCHR(status.st_mode)) {
        node->is_there = true;
        node->number = status.st_rdev;
    }
    /* CUDA works through /dev/nvidia0. */
    driver = root_link_name(root, "/sys/class/drm/%s/device/driver", node->name);
    node->is_elsewhere = driver != NULL && strncmp(driver, "nvidia", strlen("nvidia")) == 0;
    free(driver);
}

static int need_by_name(struct node_list *list, const struct root *root, const char *name,
                        struct node **ret_node)
{
    struct node *node;

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
    look_at_node(node, root);
    *ret_node = node;
    return 0;
}

int node_list_need(struct node_list *list, const struct root *root, const char *target,
                   struct node **ret_node)
{
    const char *name = node_name(root, target);

    *ret_node = NULL;
    return name == NULL ? 0 : need_by_name(list, root, name, ret_node);
}

int node_list_add_present(struct node_list *list, const struct root *root, struct look *look)
{
    static const struct pci_address none = {0};
    struct string_list names = {0};
    int code = root_list(root, &names, "/dev/dri") == -ENOMEM ? BERTH_ERROR_MEMORY : 0;

    for (size_t i = 0; code == 0 && i < names.count; i++) {
        struct node *node = NULL;
        size_t place;

        if (is_node_name(names.items[i]))
            code = need_by_name(list, root, names.items[i], &node);
        if (node != NULL)
            code = node_device(node, none, look, &place);
    }
    string_list_finish(&names);
    return code;
}

void node_list_finish(struct node_list *list)
{
    struct node *node;

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

static bool is_same(const struct used_device *one, const struct used_device *other)
{
    if (one->path != NULL && other->path != NULL)
        return strcmp(one->path, other->path) == 0;
    if (one->pci.known && other->pci.known)
        return pci_compare(one->pci, other->pci) == 0;
    return share_node(&one->nodes, &other->nodes);
}

size_t look_find_device(const struct look *look, const struct used_device *device)
{
    size_t place = 0;

    while (place < look->devices.count && !is_same(device, &look->devices.items[place]))
        place++;
    return place;
}

/* Adds to a device what is known of it, perhaps by another of its files. */
static int learn(struct used_device *device, const struct used_device *known)
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

int node_device(const struct node *node, struct pci_address pci, struct look *look,
                size_t *ret_place)
{
    /* What the name stands for here is of no use where it stood for something else. */
    bool is_misnamed = pci.known && node->pci.known && pci_compare(pci, node->pci) != 0;
    char file[sizeof(NODE_DIRECTORY) + NODE_NAME_SIZE];
    char *files[] = {file};
    struct used_device known = {
        .pci = pci.known ? pci : node->pci,
        .path = is_misnamed ? NULL : node->path,
        .nodes = {.items = files, .count = is_misnamed ? 0 : COUNT(files)},
    };
    size_t place;

    snprintf(file, sizeof(file), NODE_DIRECTORY "%s", node->name);
    place = look_find_device(look, &known);
    if (place == look->devices.count && vector_append(&look->devices) == NULL)
        return BERTH_ERROR_MEMORY;
    look->devices.items[place].is_elsewhere |= !is_misnamed && node->is_elsewhere;
    *ret_place = place;
    return learn(&look->devices.items[place], &known);
}
