/* SPDX-License-Identifier: Apache-2.0
 *
 * How busy a device is. Every figure may be unknown and carries the time of its own sample;
 * unknown is never compared as 0. Figures are whole numbers in small units, so that what is
 * decided from them is the same everywhere.
 */
#ifndef MODEL_LOAD_H
#define MODEL_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* The time of a figure that nobody sampled: somebody declared it, in an inventory file say. */
#define FIGURE_DECLARED INT64_MIN

struct figure {
    bool known;
    int64_t value;
    int64_t sampled_at; /* nanoseconds since 1970 UTC, or FIGURE_DECLARED */
};

struct load {
    struct figure memory_free; /* bytes */
    struct figure utilization; /* thousandths, 0 to 1000 */
    struct figure temperature; /* thousandths of a degree Celsius */
    struct figure power;       /* milliwatts */
    struct figure frequency;   /* of the compute engine, hertz */
};

static inline struct figure load_figure_declared(int64_t value)
{
    return (struct figure){.known = true, .value = value, .sampled_at = FIGURE_DECLARED};
}

static inline struct figure load_figure_sampled(int64_t value, int64_t sampled_at)
{
    return (struct figure){.known = true, .value = value, .sampled_at = sampled_at};
}

/* The time of the oldest sampled figure: nothing sampled in the load is older. Returns false, and
 * leaves *ret_time alone, when no known figure was sampled. */
bool load_sampled_at(const struct load *load, int64_t *ret_time);

/* Whether both say the same, times included. */
bool load_equals(const struct load *one, const struct load *other);

#endif
