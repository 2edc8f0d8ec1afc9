/* SPDX-License-Identifier: Apache-2.0
 *
 * Which devices a request accepts, and for each other one the reason. Pure.
 */
#ifndef ENGINE_PLACEMENT_FILTER_H
#define ENGINE_PLACEMENT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text/text.h"
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
    FILTER_MASKED,
    FILTER_GONE,
    FILTER_OUTSIDE,
    FILTER_RESERVED,
    /* For now. */
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

/* How far devices are shared. */
struct filter_terms {
    uint32_t time_slice_tenants; /* on one device at most */
    uint32_t mps_tenants;
    uint32_t share;                /* millionths of each device that there are to give */
    struct optional_number memory; /* bytes of each device that there are to give; unknown: all */
};

/* 4 and 8 tenants on whole devices. */
extern const struct filter_terms filter_default_terms;

/* The first reason against the device that stands whatever happens: fixed facts against the
 * request; FILTER_PASSES otherwise. */
enum filter_verdict filter_facts(const struct request *request, const struct device *device,
                                 const struct filter_terms *terms);

/* Whether both devices have the same facts as far as the request looks at them. */
bool filter_is_alike(const struct request *request, const struct device *one,
                     const struct device *other);

/* The first reason against the device, by its facts and its load; never one that only a ledger
 * knows, such as FILTER_BUSY. */
enum filter_verdict filter_device(const struct request *request, const struct device *device,
                                  const struct filter_terms *terms);

/* Whether the device has the free memory that is asked for, by what was sampled; unknown does not
 * pass. */
bool filter_has_free(const struct request *request, const struct device *device);

/* Whether a device with this verdict may pass later. */
bool filter_may_change(enum filter_verdict verdict);

/* The reason in words, of one device: "is busy"; NULL for FILTER_PASSES. */
const char *filter_reason(enum filter_verdict verdict);

/* Appends counts with their reasons: "2 are busy, 1 is another vendor's"; nothing when all pass.
 * `counts` has FILTER_VERDICTS members. */
void filter_describe(const size_t *counts, struct text *out);

/* How many such claims an empty device that passes can carry at once: 1 when exclusive, else what
 * share, memory and the number of tenants allow (0: it is too small). */
uint32_t filter_tenants(const struct request *request, const struct device *device,
                        const struct filter_terms *terms);

/* The bytes that a claim which shares devices counts with on each: what it reserves or, where it
 * reserves none, what it wants to find free, since it means to use that. 0: none. */
uint64_t filter_memory(const struct request *request);

/* How many such claims fit one after the other into so much memory, each finding as much of it
 * left as it asks for; UINT64_MAX: it does not matter. */
uint64_t filter_fitting(const struct request *request, uint64_t left);

/* The memory of each device that such a claim has its part of; unknown does not bound one that
 * reserves none. */
struct optional_number filter_memory_bound(const struct request *request,
                                           const struct device *device,
                                           const struct filter_terms *terms);

/* Whether a request shares devices and names no share: it takes an even part of each. */
bool filter_shares_evenly(const struct request *request);

/* What a claim takes of each device, in millionths: its share, or an even part where it names
 * none. */
uint32_t filter_share(const struct request *request, const struct filter_terms *terms);

#endif
