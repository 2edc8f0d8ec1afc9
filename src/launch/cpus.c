/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/cpus.h"

#include <berth/error.h>
#include <stdbool.h>
#include <string.h>

static bool is_list(const char *cpus)
{
    struct bitset set;

    if (bitset_parse_ranges(cpus, CPUS_MAX, &set, NULL) < 0)
        return false;
    bitset_finish(&set);
    return true;
}

int cpus_near(const struct device *devices, size_t count, struct bitset *ret_cpus)
{
    struct text lists = {0};
    const char *last = "";
    int code = BERTH_ERROR_NOT_FOUND;

    for (size_t i = 0; i < count; i++) {
        const char *cpus = devices[i].cpus;

        if (cpus == NULL || strcmp(cpus, last) == 0 || !is_list(cpus))
            continue;
        if (lists.length > 0)
            text_append_char(&lists, ',');
        text_append(&lists, cpus);
        last = cpus;
    }
    if (text_failed(&lists))
        code = BERTH_ERROR_MEMORY;
    else if (lists.length > 0)
        code = bitset_parse_ranges(text_string(&lists), CPUS_MAX, ret_cpus, NULL);
    text_finish(&lists);
    return code == 0 || code == BERTH_ERROR_MEMORY ? code : BERTH_ERROR_NOT_FOUND;
}
