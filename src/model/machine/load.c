/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/load.h"

#include <stddef.h>

#include "base/count.h"

bool load_sampled_at(const struct load *load, int64_t *ret_time)
{
    const struct figure *figures[] = {&load->memory_free, &load->utilization, &load->temperature,
                                      &load->power, &load->frequency};
    const struct figure *oldest = NULL;

    for (size_t i = 0; i < COUNT(figures); i++) {
        if (!figures[i]->known || figures[i]->sampled_at == FIGURE_DECLARED)
            continue;
        if (oldest == NULL || figures[i]->sampled_at < oldest->sampled_at)
            oldest = figures[i];
    }
    if (oldest == NULL)
        return false;
    *ret_time = oldest->sampled_at;
    return true;
}

static bool same_figure(const struct figure *one, const struct figure *other)
{
    return one->known == other->known &&
           (!one->known || (one->value == other->value && one->sampled_at == other->sampled_at));
}

bool load_equals(const struct load *one, const struct load *other)
{
    return same_figure(&one->memory_free, &other->memory_free) &&
           same_figure(&one->utilization, &other->utilization) &&
           same_figure(&one->temperature, &other->temperature) &&
           same_figure(&one->power, &other->power) &&
           same_figure(&one->frequency, &other->frequency);
}
