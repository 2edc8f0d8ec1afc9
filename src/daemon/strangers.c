/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/strangers.h"

void strangers_begin(struct strangers *strangers, pid_t newest, int64_t now)
{
    pid_t before = strangers->newest;

    if (now - strangers->since > STRANGERS_KNOWN_FOR || newest < before ||
        newest - before >= STRANGERS_MAX) {
        *strangers = (struct strangers){.since = now, .newest = newest};
        return;
    }
    /* The places of the oldest become those of the newest. */
    for (pid_t pid = before + 1; pid <= newest; pid++)
        strangers->known[pid % STRANGERS_MAX / 64] &= ~(UINT64_C(1) << pid % 64);
    strangers->newest = newest;
}

static bool has_place(const struct strangers *strangers, pid_t pid)
{
    return pid <= strangers->newest && pid > strangers->newest - STRANGERS_MAX && pid > 0;
}

bool strangers_has(const struct strangers *strangers, pid_t pid)
{
    return has_place(strangers, pid) &&
           (strangers->known[pid % STRANGERS_MAX / 64] >> pid % 64 & 1) != 0;
}

void strangers_add(struct strangers *strangers, pid_t pid)
{
    if (has_place(strangers, pid))
        strangers->known[pid % STRANGERS_MAX / 64] |= UINT64_C(1) << pid % 64;
}
