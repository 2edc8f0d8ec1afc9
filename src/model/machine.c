/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine.h"

void machine_finish(struct machine *machine)
{
    device_list_finish(&machine->devices);
    vector_finish(&machine->links);
}
