/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/process_status.h"

struct span process_status_find(struct span status, const char *key)
{
    struct span line;

    while (span_read_line(&status, &line)) {
        if (span_skip_prefix(&line, key) && span_skip_prefix(&line, ":"))
            return span_trim(line);
    }
    return (struct span){"", 0};
}

pid_t process_status_parent(struct span status)
{
    struct span line = process_status_find(status, "PPid");
    uint64_t parent;

    return span_read_number(&line, &parent) && parent <= INT32_MAX ? (pid_t)parent : 0;
}
