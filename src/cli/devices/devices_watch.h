/* SPDX-License-Identifier: Apache-2.0
 *
 * Showing the devices: once, or again and again.
 */
#ifndef CLI_DEVICES_DEVICES_WATCH_H
#define CLI_DEVICES_DEVICES_WATCH_H

#include <stdbool.h>

#include "cli/devices/devices_scan.h"

/* With the first look taken: prints it. Problems go to standard error, unless they are in the JSON
 * document. Returns an exit code. */
int devices_show(struct devices_scan *scan, bool json);

/* The same for ever, a look every second: on a terminal redrawn in place, else one block, or one
 * line of JSON, after the other as something changes. */
int devices_watch(struct devices_scan *scan, bool json);

#endif
