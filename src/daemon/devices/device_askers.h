/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of other pools that ask for the name of a device (daemon/devices/device_locks.h). A
 * pool gets one byte if the device is in use; the end of its connection says that the name is free.
 */
#ifndef DAEMON_DEVICES_DEVICE_ASKERS_H
#define DAEMON_DEVICES_DEVICE_ASKERS_H

#include <stdbool.h>
#include <stddef.h>

/* The most that wait for one name. */
enum { DEVICE_ASKERS_MAX = 64 };

/* Zeroed memory has none. */
struct device_askers {
    int *descriptors;
    size_t count;
    bool are_waiting; /* for an answer */
};

/* Accepts a connection, and closes those whose other end is gone. Returns false if there is none,
 * too many wait, or there is no memory: the connection is closed then. */
bool device_askers_accept(struct device_askers *askers, int listener);

/* Say that the device is in use: to all, or to the one that came last. */
void device_askers_refuse(struct device_askers *askers);
void device_askers_refuse_last(const struct device_askers *askers);

/* Closes all connections, which says that the name is free, and frees the memory. */
void device_askers_finish(struct device_askers *askers);

#endif
