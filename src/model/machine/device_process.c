/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/device_process.h"

#include <stdlib.h>

#include "base/system/container.h"

struct device_process *device_process_find(const struct device_process_list *list, uint64_t pid)
{
    struct device_process *process;

    vector_for_each (process, list) {
        if (process->pid == pid)
            return process;
    }
    return NULL;
}

struct device_process *device_process_find_or_add(struct device_process_list *list, uint64_t pid)
{
    struct device_process *process = device_process_find(list, pid);

    if (process != NULL || list->count >= DEVICE_PROCESSES_MAX)
        return process;
    process = vector_append(list);
    if (process != NULL)
        process->pid = pid;
    return process;
}

void device_process_advise(const struct device_process *process, struct text *out)
{
    if (process->container != NULL)
        text_append_format(
            out, "start it with 'berth cdi --arguments', or 'berth adopt --container %.*s'",
            container_shown_length(process->container), process->container);
}

void device_process_finish(struct device_process *process)
{
    free(process->command);
    free(process->container);
    free(process->said_socket);
    *process = (struct device_process){0};
}

void device_process_list_finish(struct device_process_list *list)
{
    struct device_process *process;

    vector_for_each (process, list)
        device_process_finish(process);
    vector_finish(list);
}
