/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/process_container.h"

#include <stdio.h>
#include <string.h>

#include "base/system/container.h"
#include "base/system/file.h"
#include "base/system/namespaces.h"
#include "base/system/process_stat.h"

enum { GROUPS_MAX = 65536 };

static void find_container(const char *path, struct text *out)
{
    struct text groups = {0};

    if (file_read(path, GROUPS_MAX, &groups, NULL) == 0)
        container_find(text_string(&groups), groups.length, out);
    text_finish(&groups);
}

bool process_container(pid_t pid, struct text *out)
{
    struct text container = {0};
    struct text ours = {0};
    char path[64];
    bool is_in_one;

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    find_container(path, &container);
    if (container.length > 0)
        find_container("/proc/self/cgroup", &ours);
    is_in_one = container.length > 0 && strcmp(text_string(&container), text_string(&ours)) != 0;
    if (is_in_one)
        text_append(out, text_string(&container));
    text_finish(&container);
    text_finish(&ours);
    return is_in_one && !text_failed(out);
}

bool process_container_begun(pid_t pid, struct text *out)
{
    struct text container = {0};
    struct text around = {0};
    bool has_begun = process_container(pid, &container);

    process_container(process_stat_parent(pid), &around);
    has_begun = has_begun && strcmp(text_string(&container), text_string(&around)) != 0;
    if (has_begun)
        text_append(out, text_string(&container));
    text_finish(&container);
    text_finish(&around);
    return has_begun && !text_failed(out);
}

bool process_container_owner(pid_t pid, uint32_t *ret_uid)
{
    struct text container = {0};
    bool is_roots;

    if (namespace_user_owner(pid, ret_uid))
        return true;
    is_roots = namespace_pid_is_owned_by_root(pid) && process_container(pid, &container);
    text_finish(&container);
    if (is_roots)
        *ret_uid = 0;
    return is_roots;
}
