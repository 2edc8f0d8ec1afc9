/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine made of files, in the directory of one test (support/temporary_directory.h). Paths are
 * the machine's: "/sys/class/drm".
 */
#ifndef TESTS_MADE_UP_MACHINE_H
#define TESTS_MADE_UP_MACHINE_H

#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardware/sysfs/sysroot.h"
#include "support/temporary_directory.h"

/* The root of the machine. It is a recorded machine unless a test changes that. */
static struct sysroot machine;

/* Setup and teardown functions for cmocka. */
static inline int machine_enter(void **state)
{
    if (temporary_directory_enter(state) < 0)
        return -1;
    if (setenv("BERTH_SYSROOT", *state, 1) < 0 || sysroot_init(&machine, NULL) < 0)
        return -1;
    return 0;
}

static inline int machine_leave(void **state)
{
    sysroot_finish(&machine);
    unsetenv("BERTH_SYSROOT");
    return temporary_directory_leave(state);
}

/* Makes the directory and all its parents. */
static inline void machine_directory(const char *path)
{
    char *copy = strdup(path);

    assert_non_null(copy);
    for (char *end = strchr(copy + 1, '/');; end = strchr(end + 1, '/')) {
        if (end != NULL)
            *end = '\0';
        mkdir(copy + 1, 0755); /* may exist already */
        if (end == NULL)
            break;
        *end = '/';
    }
    free(copy);
}

static inline void machine_parent(const char *path)
{
    char *copy = strdup(path);

    assert_non_null(copy);
    *strrchr(copy, '/') = '\0';
    if (copy[0] != '\0')
        machine_directory(copy);
    free(copy);
}

static inline void machine_bytes(const char *path, const void *bytes, size_t length)
{
    int descriptor;

    machine_parent(path);
    descriptor = open(path + 1, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, length), length);
    assert_int_equal(close(descriptor), 0);
}

static inline void machine_file(const char *path, const char *content)
{
    machine_bytes(path, content, strlen(content));
}

/* Writes a file of a directory, with a newline after its content, as in sysfs. */
static inline void machine_value(const char *directory, const char *name, const char *value)
{
    char *path;
    char *content;

    assert_true(asprintf(&path, "%s/%s", directory, name) >= 0);
    assert_true(asprintf(&content, "%s\n", value) >= 0);
    machine_file(path, content);
    free(path);
    free(content);
}

/* Replaces a file by a pipe. Opening it hangs, as with a driver that does not answer. */
static inline void machine_pipe(const char *path)
{
    machine_parent(path);
    unlink(path + 1);
    assert_int_equal(mkfifo(path + 1, 0600), 0);
}

/* Makes a link to a path of the machine, relative as in sysfs. */
static inline void machine_link(const char *path, const char *target)
{
    char relative[1024] = "";

    machine_parent(path);
    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
        strcat(relative, "../");
    strcat(relative, target + 1);
    assert_int_equal(symlink(relative, path + 1), 0);
}

/* Makes a DRM node of a device (card0, renderD128), as the kernel shows it. */
static inline void machine_drm_node(const char *device, const char *name)
{
    char path[1024];
    char link[1024];

    snprintf(path, sizeof(path), "%s/drm/%s", device, name);
    machine_directory(path);
    snprintf(link, sizeof(link), "/sys/class/drm/%s", name);
    machine_link(link, path);
    snprintf(link, sizeof(link), "%s/drm/%s/device", device, name);
    machine_link(link, device);
}

/* Sets the driver of a device. */
static inline void machine_driver(const char *device, const char *bus, const char *driver)
{
    char path[1024];
    char link[1024];

    snprintf(path, sizeof(path), "/sys/bus/%s/drivers/%s", bus, driver);
    machine_directory(path);
    snprintf(link, sizeof(link), "%s/driver", device);
    machine_link(link, path);
}

/* Makes a PCI device with these ids, "8086:56a0". */
static inline void machine_pci(const char *device, const char *ids)
{
    char value[16];
    char link[1024];

    snprintf(value, sizeof(value), "0x%.4s", ids);
    machine_value(device, "vendor", value);
    snprintf(value, sizeof(value), "0x%.4s", ids + 5);
    machine_value(device, "device", value);
    snprintf(link, sizeof(link), "/sys/bus/pci/devices/%s", strrchr(device, '/') + 1);
    machine_link(link, device);
}

#endif
