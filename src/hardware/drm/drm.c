/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/drm/drm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "hardware/sysfs/locality.h"

/* Limits for the walk through the tree of devices: the nesting of bridges, and the number of
 * directories. */
#define WALK_DEPTH_MAX 16
#define WALK_MAX       4096

/* Returns whether the name is this prefix and a number: card0, not card0-DP-1. */
static bool is_numbered(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);
    const char *number = name + length;

    return strncmp(name, prefix, length) == 0 && *number != '\0' &&
           number[strspn(number, "0123456789")] == '\0';
}

static bool is_card(const char *name)
{
    return is_numbered(name, "card");
}

static bool is_render(const char *name)
{
    return is_numbered(name, "renderD");
}

void drm_device_finish(struct drm_device *device)
{
    free(device->path);
    free(device->driver);
    free(device->card);
    free(device->render);
    *device = (struct drm_device){0};
}

void drm_list_finish(struct drm_list *list)
{
    struct drm_device *device;

    vector_for_each (device, list)
        drm_device_finish(device);
    vector_finish(list);
}

/* Reads the address from the uevent of a directory whose position in the tree was not recorded. */
static struct pci_address recorded_address(const struct sysroot *root, const char *path)
{
    static const char key[] = "PCI_SLOT_NAME=";
    struct pci_address address = {0};
    struct sysroot_value uevent;
    char *rest = uevent.text;
    char *line;

    if (sysroot_read(root, &uevent, "%s/uevent", path) != 0)
        return address;
    while ((line = strsep(&rest, "\n")) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            pci_parse(line + strlen(key), &address, NULL);
    return address;
}

static struct pci_address address_of(const struct sysroot *root, const char *path)
{
    static const char tree[] = "/sys/devices/";

    return strncmp(path, tree, strlen(tree)) == 0 ? locality_pci_of(path, NULL)
                                                  : recorded_address(root, path);
}

/* Returns the directory of the device with this card or render node. NULL if there is none or if
 * memory ran out; errno tells which. */
static char *device_directory(const struct sysroot *root, const char *name)
{
    char *path;
    char *end;

    errno = 0;
    path = sysroot_resolve(root, "/sys/class/drm/%s/device", name);
    if (path != NULL || errno == ENOMEM)
        return path;
    path = sysroot_resolve(root, "/sys/class/drm/%s", name);
    end = path == NULL ? NULL : strrchr(path, '/');
    if (end == NULL)
        return NULL;
    *end = '\0';
    end = strrchr(path, '/');
    if (end != NULL && strcmp(end, "/drm") == 0 &&
        strncmp(path, "/sys/devices/virtual/", strlen("/sys/devices/virtual/")) != 0) {
        *end = '\0';
        return path;
    }
    free(path);
    errno = ENODEV;
    return NULL;
}

/* Adds a device with its first node. Takes over the path, also on failure. */
static int add_node(struct drm_list *list, char *path, const char *name, struct berth_error *error)
{
    struct drm_device *device = vector_append(list);
    char *copy = strdup(name);

    if (device == NULL || copy == NULL) {
        free(copy);
        free(path);
        if (device != NULL)
            list->count--;
        return error_set_memory(error);
    }
    device->path = path;
    if (is_card(name))
        device->card = copy;
    else
        device->render = copy;
    return 0;
}

static int list_class(const struct sysroot *root, const struct string_list *names,
                      struct drm_list *list, struct berth_error *error)
{
    char **name;

    vector_for_each (name, names) {
        char *path;

        if (!is_card(*name) && !is_render(*name))
            continue;
        path = device_directory(root, *name);
        if (path == NULL && errno == ENOMEM)
            return error_set_memory(error);
        if (path != NULL && add_node(list, path, *name, error) < 0)
            return BERTH_ERROR_MEMORY;
    }
    return 0;
}

/* Adds the nodes that the device in this directory has in `drm`. */
static int list_directory(const struct sysroot *root, const char *path, struct drm_list *list,
                          struct berth_error *error)
{
    struct string_list names = {0};
    int code = sysroot_list(root, &names, "%s/drm", path) == -ENOMEM ? error_set_memory(error) : 0;
    char **name;

    vector_for_each (name, &names) {
        char *copy;

        if (code < 0 || (!is_card(*name) && !is_render(*name)))
            continue;
        copy = strdup(path);
        code = copy == NULL ? error_set_memory(error) : add_node(list, copy, *name, error);
    }
    string_list_finish(&names);
    return code;
}

/* A directory in the tree of devices. */
struct tree_directory {
    char *path;
    unsigned depth;
};

struct tree_directories {
    VECTOR_OF(struct tree_directory);
};

/* Adds the subdirectories that may lead to a device, to be visited later. */
static int add_directories(const struct sysroot *root, struct tree_directories *walks,
                           const char *path, unsigned depth, bool (*is_wanted)(const char *name),
                           struct berth_error *error)
{
    struct string_list names = {0};
    int code = sysroot_list(root, &names, "%s", path) == -ENOMEM ? error_set_memory(error) : 0;
    char **name;

    vector_for_each (name, &names) {
        struct text below = {0};
        struct tree_directory *walk;

        if (code < 0 || walks->count >= WALK_MAX || !is_wanted(*name))
            continue;
        text_append_format(&below, "%s/%s", path, *name);
        walk = text_failed(&below) ? NULL : vector_append(walks);
        if (walk == NULL) {
            text_finish(&below);
            code = error_set_memory(error);
            continue;
        }
        *walk = (struct tree_directory){.path = text_detach(&below), .depth = depth};
    }
    string_list_finish(&names);
    return code;
}

static bool is_host(const char *name)
{
    return strncmp(name, "pci", 3) == 0 && strchr(name, ':') != NULL;
}

static bool is_device(const char *name)
{
    return locality_pci_of(name, NULL).known || is_numbered(name, "virtio") || is_host(name);
}

/* Visits all PCI devices, for a machine that was recorded without its classes. */
static int walk_tree(const struct sysroot *root, struct drm_list *list, struct berth_error *error)
{
    struct tree_directories walks = {0};
    int code = add_directories(root, &walks, "/sys/devices", 1, is_host, error);

    for (size_t i = 0; code == 0 && i < walks.count; i++) {
        struct tree_directory walk = walks.items[i];

        code = list_directory(root, walk.path, list, error);
        if (code == 0 && walk.depth < WALK_DEPTH_MAX)
            code = add_directories(root, &walks, walk.path, walk.depth + 1, is_device, error);
    }
    for (size_t i = 0; i < walks.count; i++)
        free(walks.items[i].path);
    vector_finish(&walks);
    return code;
}

static int list_nodes(const struct sysroot *root, struct drm_list *list, struct berth_error *error)
{
    struct string_list names = {0};
    int number = sysroot_list(root, &names, "/sys/class/drm");
    int code = 0;

    if (number == 0)
        code = list_class(root, &names, list, error);
    else if (number != -ENOENT && number != -ENOTDIR)
        code = error_set_errno(error, -number, "cannot list /sys/class/drm");
    else if (root->recorded)
        code = walk_tree(root, list, error);
    string_list_finish(&names);
    return code;
}

static int compare_names(const char *one, const char *other)
{
    if (one == NULL || other == NULL)
        return (one == NULL) - (other == NULL);
    return strverscmp(one, other);
}

/* Orders by address, path and names, so that the nodes of a device are neighbours and the first
 * node of each kind leads. */
static int compare_devices(const void *one, const void *other)
{
    const struct drm_device *mine = one;
    const struct drm_device *theirs = other;
    int order = theirs->pci.known - mine->pci.known;

    if (order == 0 && mine->pci.known)
        order = pci_compare(mine->pci, theirs->pci);
    if (order == 0)
        order = strverscmp(mine->path, theirs->path);
    if (order == 0)
        order = compare_names(mine->card, theirs->card);
    return order != 0 ? order : compare_names(mine->render, theirs->render);
}

/* Merges the nodes of each device into one item. */
static void join_nodes(struct drm_list *list)
{
    size_t kept = 0;

    for (size_t i = 1; i < list->count; i++) {
        struct drm_device *last = &list->items[kept];
        struct drm_device *next = &list->items[i];

        if (strcmp(last->path, next->path) != 0) {
            list->items[++kept] = *next;
            continue;
        }
        if (last->card == NULL) {
            last->card = next->card;
            next->card = NULL;
        }
        if (last->render == NULL) {
            last->render = next->render;
            next->render = NULL;
        }
        drm_device_finish(next);
    }
    if (list->count > 0)
        list->count = kept + 1;
}

/* Returns whether the table names the device's driver, or its PCI vendor if it has no known driver.
 */
static bool is_claimed_by(const struct vendor_table *table, const struct drm_device *device,
                          struct optional_number pci_vendor)
{
    if (device->driver == NULL)
        return table->pci_vendor != 0 && pci_vendor.known && pci_vendor.value == table->pci_vendor;
    for (const char *const *driver = table->drivers; driver != NULL && *driver != NULL; driver++)
        if (strcmp(*driver, device->driver) == 0)
            return true;
    return false;
}

static bool is_partition(const struct drm_device *device)
{
    const char *name = strrchr(device->path, '/');

    return name != NULL && is_numbered(name + 1, "amdgpu_xcp_");
}

static bool is_claimed(const struct sysroot *root, const struct vendor_table *table,
                       const struct drm_device *device)
{
    struct optional_number pci_vendor = {0};

    if (is_partition(device) ||
        (device->render == NULL && (!root->recorded || table->vendor == VENDOR_DRI)))
        return false;
    if (device->driver == NULL && device->pci.known)
        pci_vendor = sysroot_number(root, "%s/vendor", device->path);
    if (table->vendor != VENDOR_DRI)
        return is_claimed_by(table, device, pci_vendor);
    for (const struct vendor_table *const *other = vendor_tables; *other != NULL; other++)
        if (is_claimed_by(*other, device, pci_vendor))
            return false;
    return true;
}

/* Returns the name of the driver. NULL if it is unknown or if memory ran out; errno tells which. */
static char *driver_of(const struct sysroot *root, const char *path)
{
    errno = 0;
    return sysroot_link_name(root, "%s/driver", path);
}

int drm_list_claimed(const struct sysroot *root, const struct vendor_table *table,
                     struct drm_list *ret_list, struct berth_error *error)
{
    struct drm_list list = {0};
    int code = list_nodes(root, &list, error);
    struct drm_device *device;

    vector_for_each (device, &list)
        device->pci = address_of(root, device->path);
    if (list.count > 1)
        qsort(list.items, list.count, sizeof(*list.items), compare_devices);
    join_nodes(&list);
    vector_for_each (device, &list) {
        struct drm_device *claimed;

        if (code < 0)
            break;
        device->driver = driver_of(root, device->path);
        if (device->driver == NULL && errno == ENOMEM)
            code = error_set_memory(error);
        if (code < 0 || !is_claimed(root, table, device))
            continue;
        claimed = vector_append(ret_list);
        if (claimed == NULL) {
            code = error_set_memory(error);
        } else {
            *claimed = *device;
            *device = (struct drm_device){0};
        }
    }
    drm_list_finish(&list);
    return code;
}

/* Returns the card if the path is a directory that was recorded below the card's class directory.
 */
static char *recorded_card(const char *path)
{
    static const char class[] = "/sys/class/drm/";
    const char *name = path + strlen(class);
    char *card;

    if (strncmp(path, class, strlen(class)) != 0)
        return NULL;
    card = strndup(name, strcspn(name, "/"));
    if (card != NULL && !is_card(card)) {
        free(card);
        card = NULL;
        errno = ENODEV;
    }
    return card;
}

int drm_device_at(const struct sysroot *root, const char *path, struct drm_device *ret_device,
                  struct berth_error *error)
{
    struct drm_device device = {.path = strdup(path)};
    struct drm_list list = {0};
    int code =
        device.path == NULL ? error_set_memory(error) : list_directory(root, path, &list, error);

    if (list.count > 1)
        qsort(list.items, list.count, sizeof(*list.items), compare_devices);
    join_nodes(&list);
    if (code == 0 && list.count > 0) {
        drm_device_finish(&device);
        device = list.items[0];
        list.count = 0;
    }
    drm_list_finish(&list);
    if (code == 0) {
        errno = 0;
        if (device.card == NULL && device.render == NULL)
            device.card = recorded_card(path);
        if (errno != ENOMEM)
            device.driver = driver_of(root, path);
        if (errno == ENOMEM)
            code = error_set_memory(error);
    }
    if (code < 0) {
        drm_device_finish(&device);
        return code;
    }
    device.pci = address_of(root, path);
    *ret_device = device;
    return 0;
}

static int add_device_file(const struct sysroot *root, const char *name, struct string_list *nodes,
                           struct berth_error *error)
{
    struct text path = {0};
    int code = 0;

    if (name == NULL || !sysroot_has(root, "/dev/dri/%s", name))
        return 0;
    text_append_format(&path, "/dev/dri/%s", name);
    if (text_failed(&path) || string_list_append(nodes, text_string(&path)) < 0)
        code = error_set_memory(error);
    text_finish(&path);
    return code;
}

int drm_nodes(const struct sysroot *root, const struct drm_device *drm,
              struct string_list *ret_nodes, struct berth_error *error)
{
    int code = add_device_file(root, drm->render, ret_nodes, error);

    return code < 0 ? code : add_device_file(root, drm->card, ret_nodes, error);
}

bool drm_is_reachable(const struct sysroot *root, const struct drm_device *drm)
{
    return root->recorded || (drm->render != NULL && sysroot_has(root, "/dev/dri/%s", drm->render));
}
