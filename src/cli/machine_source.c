/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine_source.h"

#include <stdlib.h>

#include "base/error.h"
#include "spec/inventory.h"

int machine_source_read(const char *inventory, struct machine *ret_machine, bool *ret_virtual,
                        struct berth_error *error)
{
    const char *path = inventory != NULL ? inventory : getenv("BERTH_INVENTORY");
    bool is_virtual = path != NULL && *path != '\0';
    int code = 0;

    if (inventory != NULL && *inventory == '\0')
        return error_set(error, BERTH_ERROR_INVALID, "--inventory: wanted a file, found nothing");
    if (is_virtual)
        code = inventory_read(path, ret_machine, error);
    else
        *ret_machine = (struct machine){0};
    if (code == 0)
        *ret_virtual = is_virtual;
    return code;
}
