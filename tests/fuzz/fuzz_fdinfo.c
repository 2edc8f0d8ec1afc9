/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as the fdinfo of an open DRM device.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hardware/proc/fdinfo.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fdinfo fdinfo;

    fdinfo_parse((const char *)data, size, &fdinfo);
    require(fdinfo.engine_count <= FDINFO_ENGINES_MAX);
    for (size_t i = 0; i < fdinfo.engine_count; i++) {
        const struct fdinfo_engine *engine = &fdinfo.engines[i];
        size_t length = strnlen(engine->name, FDINFO_NAME_SIZE);

        require(length > 0 && length < FDINFO_NAME_SIZE);
        require_inert(engine->name, length);
        require(engine->capacity >= 1 && engine->capacity <= FDINFO_CAPACITY_MAX);
        for (size_t j = 0; j < i; j++)
            require(strcmp(fdinfo.engines[j].name, engine->name) != 0);
    }
    require(!fdinfo.pci.known || (fdinfo.pci.device < 32 && fdinfo.pci.function < 8));
    return 0;
}
