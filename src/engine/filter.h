/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices a request accepts, and for each other one the reason. Pure.
 */
#ifndef ENGINE_FILTER_H
#define ENGINE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "model/device.h"
#include "model/request.h"

enum filter_verdict {
    FILTER_PASSES,
    /* For ever: no waiting helps. */
    FILTER_PARTITIONED,
    FILTER_NOT_WANTED,
    FILTER_VENDOR,
    FILTER_MODEL,
    FILTER_MEMORY,
    FILTER_CAPABILITY,
    FILTER_NO_MPS,
    FILTER_TOO_SMALL_TO_SHARE,
    /* For now. */
    FILTER_SICK,
    FILTER_LOW_ON_MEMORY,
    FILTER_BUSY,
    FILTER_VERDICTS,
};

/* The first reason against the device, by its facts and its load; never FILTER_BUSY, which only
 * the ledger knows. */
enum filter_verdict filter_device(const struct request *request, const struct device *device);

/* Whether a device with this verdict may pass later. */
bool filter_may_change(enum filter_verdict verdict);

/* Appends counts with their reasons: "2 are busy, 1 is another vendor's"; nothing when all pass.
 * `counts` has FILTER_VERDICTS members. */
void filter_describe(const size_t *counts, struct text *out);

/* How many such claims an empty device that passes can carry at once: 1 when exclusive, else what
 * share, memory and the number of tenants allow (0: it is too small). */
uint32_t filter_tenants(const struct request *request, const struct device *device);

#endif
