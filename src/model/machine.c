/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine.h"

void machine_finish(struct machine *machine)
{
    struct host *host;

    device_list_finish(&machine->devices);
    vector_finish(&machine->links);
    vector_for_each (host, &machine->hosts)
        free(host->name);
    vector_finish(&machine->hosts);
}
