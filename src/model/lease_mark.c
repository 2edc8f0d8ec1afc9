/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lease_mark.h"

#include <stdlib.h>
#include <string.h>

struct lease_mark lease_mark_read(const char *bytes, size_t length)
{
    static const char lease_name[] = "BERTH_LEASE=";
    static const char socket_name[] = "BERTH_SOCKET=";
    const char *end = bytes + length;
    struct lease_mark mark = {0};

    for (const char *entry = bytes; entry < end; entry += strlen(entry) + 1) {
        if (strncmp(entry, "BERTH_", strlen("BERTH_")) != 0)
            continue;
        if (strncmp(entry, lease_name, sizeof(lease_name) - 1) == 0) {
            const char *value = entry + sizeof(lease_name) - 1;
            char *rest;

            mark.lease = strtoull(value, &rest, 10);
            if (*rest != '\0' || *value < '0' || *value > '9')
                mark.lease = 0;
        } else if (strncmp(entry, socket_name, sizeof(socket_name) - 1) == 0) {
            mark.socket = entry + sizeof(socket_name) - 1;
        }
    }
    return mark;
}
