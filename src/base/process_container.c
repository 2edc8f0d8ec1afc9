/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process_container.h"

#include <stdio.h>
#include <string.h>

#include "base/container.h"
#include "base/file.h"
#include "base/process_stat.h"

enum { GROUPS_LONGEST = 65536 };

bool process_container(pid_t pid, struct text *out)
{
    struct text groups = {0};
    size_t before = out->length;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    if (file_read(path, GROUPS_LONGEST, &groups, NULL) == 0)
        container_find(text_string(&groups), groups.length, out);
    text_finish(&groups);
    return out->length > before;
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
