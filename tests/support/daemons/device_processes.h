/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes on the devices of a stage, as a report of the probe would have them.
 */
#ifndef TESTS_DEVICE_PROCESSES_H
#define TESTS_DEVICE_PROCESSES_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "model/machine/device.h"
#include "support/engine/machines.h"

/* Appends a copy of the process. */
static inline void add_process(struct device_process_list *list,
                               const struct device_process *process)
{
    struct device_process *place = vector_append(list);

    assert_non_null(place);
    *place = *process;
    place->command = process->command == NULL ? NULL : copy_of(process->command);
    place->container = process->container == NULL ? NULL : copy_of(process->container);
    place->said_socket = process->said_socket == NULL ? NULL : copy_of(process->said_socket);
    if (process->ancestor_count > 0) {
        size_t size = process->ancestor_count * sizeof(*process->ancestors);
        uint32_t *ancestors = malloc(size);

        assert_non_null(ancestors);
        memcpy(ancestors, process->ancestors, size);
        place->ancestors = ancestors;
    }
}

/* Replaces the processes on a device by this one; NULL: by none. */
static inline void put_process(struct engine *engine, uint32_t slot,
                               const struct device_process *process)
{
    struct device seen = {0};

    if (process != NULL)
        add_process(&seen.processes, process);
    engine_device_observe(engine, slot, &seen);
    device_finish(&seen);
}

#endif
