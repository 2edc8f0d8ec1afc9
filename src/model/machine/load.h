/* SPDX-License-Identifier: Apache-2.0
 *
 * The load of a device. Each figure may be unknown, and has the time of its own sample. An unknown
 * figure is never treated as 0. Figures are whole numbers in small units, so that decisions based
 * on them are the same on every machine.
 */
#ifndef MODEL_MACHINE_LOAD_H
#define MODEL_MACHINE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

/* The time of a figure that was declared, such as in an inventory file, and not sampled. */
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

/* Finds the time of the oldest sampled figure. Returns false, and leaves *ret_time untouched, when
 * no known figure was sampled. */
bool load_sampled_at(const struct load *load, int64_t *ret_time);

/* Returns whether both are equal, including the times. */
bool load_equals(const struct load *one, const struct load *other);

#endif
