/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as the control groups of a process.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/system/container.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct text found = {0};

    container_find((const char *)data, size, &found);
    require(!text_failed(&found));
    require(found.length <= 3 * 255); /* each byte of a name may become a replacement */
    require_inert(text_string(&found), found.length);
    text_finish(&found);
    return 0;
}
