/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes of a made-up machine. Their files are below the working directory, which must be
 * temporary.
 */
#ifndef TESTS_PROCESS_TREE_H
#define TESTS_PROCESS_TREE_H

#include "support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardware/findings.h"
#include "hardware/proc/device_users.h"
#include "hardware/sysfs/sysroot.h"

/* Returns the root of the machine that is recorded in the working directory. */
static inline struct sysroot process_tree_root(void)
{
    struct sysroot root = {.prefix = getcwd(NULL, 0), .recorded = true};

    assert_non_null(root.prefix);
    return root;
}

/* Makes the directories that lead to a file. */
static inline void process_tree_lead_to(const char *path)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        assert_true(mkdir(part, 0755) == 0 || errno == EEXIST);
    }
}

static inline void process_tree_write(const char *path, const void *bytes, size_t length)
{
    int descriptor;

    process_tree_lead_to(path);
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, length), (ssize_t)length);
    close(descriptor);
}

static inline void process_tree_file(const char *path, const char *content)
{
    process_tree_write(path, content, strlen(content));
}

static inline void process_tree_link(const char *path, const char *target)
{
    process_tree_lead_to(path);
    assert_int_equal(symlink(target, path), 0);
}

/* Adds an open file to a process. `fdinfo` is the content of its fdinfo file; NULL: none. */
static inline void process_tree_open(int pid, int descriptor, const char *target,
                                     const char *fdinfo)
{
    char path[64];

    snprintf(path, sizeof(path), "proc/%d/fd/%d", pid, descriptor);
    process_tree_link(path, target);
    snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, descriptor);
    if (fdinfo != NULL)
        process_tree_file(path, fdinfo);
}

/* Changes the fdinfo file of an open file. */
static inline void process_tree_say(int pid, int descriptor, const char *fdinfo)
{
    char path[64];

    snprintf(path, sizeof(path), "proc/%d/fdinfo/%d", pid, descriptor);
    process_tree_file(path, fdinfo);
}

/* Scans once. The caller finishes the findings. */
static inline struct findings process_tree_scan(struct device_users *uses)
{
    struct sysroot root = process_tree_root();
    struct findings findings = {0};

    assert_int_equal(device_users_scan(uses, &root, NULL, &findings, NULL), 0);
    sysroot_finish(&root);
    return findings;
}

/* Returns the device with this device file; NULL: none was found. */
static inline const struct device *process_tree_device(const struct findings *findings,
                                                       const char *node)
{
    struct device_finding *found;

    vector_for_each (found, &findings->found) {
        for (size_t i = 0; i < found->device->nodes.count; i++) {
            if (strcmp(found->device->nodes.items[i], node) == 0)
                return found->device;
        }
    }
    return NULL;
}

#endif
