/* SPDX-License-Identifier: Apache-2.0
 *
 * How much of the free GPUs the usual pods could not use: the measure of the paper on fragmentation
 * gradient descent. For one node and one kind of pod it is all that is free where the pod does not
 * fit at all (it wants no GPU, another model, more CPUs, more GPUs), else what is left on GPUs that
 * are too full for it. Of a node it is the mean over the usual pods, of a cluster the sum of its
 * nodes'. Only nodes that changed since they were last looked at are measured again.
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
    } models;      /* one device of each */
    bool *accepts; /* by model, then usual kind: whether the model would do */
    struct {
        VECTOR_OF(uint32_t);
    } changed;      /* hosts, since it was last measured */
    uint32_t *left; /* of each device of the host that is being measured, thousandths */
    uint64_t total; /* thousandths of GPUs, times the usual pods */
};

/* Begins with an empty cluster. Engine and kinds must outlast it. Fails with BERTH_ERROR_MEMORY or
 * as pod_trace_build_request; *ret_fragmentation is untouched then. */
int fragmentation_init(const struct engine *engine, const struct typical_pods *typical,
                       struct fragmentation *ret_fragmentation, struct berth_error *error);
void fragmentation_finish(struct fragmentation *fragmentation);

/* Something took so many thousandths of the host's CPUs, and perhaps devices. */
void fragmentation_changed(struct fragmentation *fragmentation, uint32_t host, uint64_t cpus);

/* What could not be used now, in thousandths of GPUs. */
double fragmentation_measure(struct fragmentation *fragmentation);

#endif
