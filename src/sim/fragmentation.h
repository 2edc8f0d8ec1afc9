/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the part of the free GPUs that typical pods cannot use, as defined in the paper on
 * fragmentation gradient descent. For one node and one kind of pod it is the whole free part if the
 * pod does not fit (it wants no GPU, another model, more CPUs or more GPUs), else the free part of
 * GPUs that are too full for the pod. A node's value is the mean over the typical pods, a cluster's
 * value the sum of its nodes. Only nodes that changed are measured again.
 */
#ifndef SIM_FRAGMENTATION_H
#define SIM_FRAGMENTATION_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"
#include "sim/typical_pods.h"

struct fragmentation_host;

struct fragmentation {
    const struct typical_pods *typical;
    const struct engine *engine;
    struct fragmentation_host *hosts; /* by number */
    struct {
        VECTOR_OF(const struct device *);
    } models;      /* one device of each model */
    bool *accepts; /* by model and typical pod: whether the model fits */
    struct {
        VECTOR_OF(uint32_t);
    } changed;      /* hosts that changed since the last measurement */
    uint32_t *left; /* thousandths free of each device of the host being measured */
    uint64_t total; /* thousandths of GPUs, times the number of typical pods */
};

/* Starts with an empty cluster. `engine` and `typical` must outlive it. Returns 0,
 * BERTH_ERROR_MEMORY or an error of pod_trace_build_request(); on an error *ret_fragmentation stays
 * as it is. */
int fragmentation_init(const struct engine *engine, const struct typical_pods *typical,
                       struct fragmentation *ret_fragmentation, struct berth_error *error);
void fragmentation_finish(struct fragmentation *fragmentation);

/* Records that a pod took `cpus` thousandths of the host's CPUs, and maybe devices. */
void fragmentation_changed(struct fragmentation *fragmentation, uint32_t host, uint64_t cpus);

/* Returns the unusable part now, in thousandths of GPUs. */
double fragmentation_measure(struct fragmentation *fragmentation);

#endif
