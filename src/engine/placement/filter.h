/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks which devices a request accepts, and finds the reason against each of the others. Pure.
 */
#ifndef ENGINE_PLACEMENT_FILTER_H
#define ENGINE_PLACEMENT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
#include "model/machine/device.h"
#include "model/request.h"

enum filter_verdict {
    FILTER_PASSES,
    /* Permanent: waiting does not help. */
    FILTER_PARTITIONED,
    FILTER_NOT_WANTED,
    FILTER_VENDOR,
    FILTER_MODEL,
    FILTER_MEMORY,
    FILTER_CAPABILITY,
    FILTER_NO_MPS,
    FILTER_TOO_SMALL_TO_SHARE,
    FILTER_MASKED,
    FILTER_GONE,
    FILTER_OUTSIDE,
    FILTER_RESERVED,
    /* Temporary. */
    FILTER_SICK,
    FILTER_LOW_ON_MEMORY,
    FILTER_BUSY,
    FILTER_SHARED_OUT,
    FILTER_TENANTS,
    FILTER_MEMORY_TAKEN,
    FILTER_OTHER_USER,
    FILTER_OTHER_MPS,
    FILTER_SQUATTED,
    FILTER_DIRTY,
    FILTER_DRAINED,
    FILTER_ELSEWHERE,
    FILTER_ASLEEP,
    FILTER_KEPT,
    FILTER_VERDICTS,
};

/* The part of each device that a pool or a lease has for claims, and the limits for sharing it. */
struct filter_terms {
    uint32_t time_slice_tenants;   /* maximum on one device */
    uint32_t mps_tenants;          /* the same */
    uint32_t share;                /* millionths of each device */
    struct optional_number memory; /* bytes of each device; unknown: all */
};

/* 4 time-slice tenants, 8 MPS tenants, whole devices. */
extern const struct filter_terms filter_default_terms;

/* Returns the first permanent reason against the device, or FILTER_PASSES. */
enum filter_verdict filter_facts(const struct request *request, const struct device *device,
                                 const struct filter_terms *terms);

/* Returns whether filter_facts() gives the same result for both devices. */
bool filter_is_alike(const struct request *request, const struct device *one,
                     const struct device *other);

/* Returns the first reason against the device by its facts and its load, or FILTER_PASSES. The
 * caller adds reasons that depend on leases, such as FILTER_BUSY. */
enum filter_verdict filter_device(const struct request *request, const struct device *device,
                                  const struct filter_terms *terms);

/* Returns whether the device has the requested free memory by its last sample. An unknown amount
 * does not pass. */
bool filter_has_free(const struct request *request, const struct device *device);

/* Returns whether a device with this verdict may pass later. */
bool filter_may_change(enum filter_verdict verdict);

/* Returns the text of the reason for one device, such as "is busy"; NULL for FILTER_PASSES. */
const char *filter_reason(enum filter_verdict verdict);

/* Appends counts with their reasons: "1 has another vendor, 2 are busy"; nothing if all pass.
 * `counts` has FILTER_VERDICTS members. */
void filter_describe(const size_t *counts, struct text *out);

/* Returns how many claims of the request fit on an empty device at once: 1 for an exclusive claim,
 * else as many as share, memory and the tenant limit allow. 0: the device is too small. */
uint32_t filter_tenants(const struct request *request, const struct device *device,
                        const struct filter_terms *terms);

/* Returns the bytes that a claim is counted with on each device (FAIRNESS.md section 9): for a
 * shared claim the memory that it reserves or, if it reserves none, the free memory that it asks
 * for. 0: none. */
uint64_t filter_memory(const struct request *request);

/* Returns how many claims of the request fit into `left` bytes one after the other, so that each
 * finds the free memory that it asks for. UINT64_MAX: memory is no limit. */
uint64_t filter_fitting(const struct request *request, uint64_t left);

/* Returns the memory of the device that claims of the request divide. If it is unknown, it does not
 * bound claims that reserve none. */
struct optional_number filter_memory_bound(const struct request *request,
                                           const struct device *device,
                                           const struct filter_terms *terms);

/* Returns whether the request shares devices without naming a share. Then it gets an equal part
 * (FAIRNESS.md section 1). */
bool filter_shares_evenly(const struct request *request);

/* Returns the millionths that a claim takes of each device: its share, or an equal part. */
uint32_t filter_share(const struct request *request, const struct filter_terms *terms);

#endif
