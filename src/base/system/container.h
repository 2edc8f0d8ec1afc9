/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the container that a process runs in by its control groups. Pure functions; any thread may
 * call them.
 */
#ifndef BASE_SYSTEM_CONTAINER_H
#define BASE_SYSTEM_CONTAINER_H

#include <stddef.h>

#include "base/text/text.h"

/* Parses the text of /proc/PID/cgroup, version 1 or 2, and appends the innermost container: the
 * hexadecimal id that docker, containerd, nerdctl, podman or CRI-O gave it, or the machine name of
 * LXC or systemd-nspawn. Appends nothing when there is no container. The result is inert
 * (base/text/utf8.h). */
void container_find(const char *bytes, size_t length, struct text *out);

/* Returns the number of bytes to show: the first twelve digits of an id, as docker does, or all of
 * a name. */
int container_shown_length(const char *container);

#endif
