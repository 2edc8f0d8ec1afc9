/* SPDX-License-Identifier: Apache-2.0
 *
 * The container that a process runs in, by where it is among the control groups. Pure.
 */
#ifndef BASE_SYSTEM_CONTAINER_H
#define BASE_SYSTEM_CONTAINER_H

#include <stddef.h>

#include "base/text/text.h"

/* Reads the text of /proc/PID/cgroup, of version 1 or 2, and appends what its runtime calls the
 * innermost container: the id in hexadecimal digits of docker, containerd, nerdctl, podman or
 * CRI-O, the name of a machine of LXC or systemd-nspawn. Nothing when there is none. What it
 * appends is inert. */
void container_find(const char *bytes, size_t length, struct text *out);

/* How many bytes of an id or a name people are shown: the first twelve digits of an id, which is
 * enough to tell it from others, and all of a name. */
int container_shown_length(const char *container);

#endif
