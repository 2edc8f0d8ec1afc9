/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/intel/energy.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/vector.h"

/* Counters change every few milliseconds, and a mean over minutes is not the current power. */
#define ELAPSED_MIN (DURATION_SECOND / 20)
#define ELAPSED_MAX (2 * DURATION_MINUTE)

/* No device uses a megawatt. */
#define MILLIWATTS_MAX (1000 * 1000 * 1000)

struct energy_counter {
    char *key;
    uint64_t microjoules;
    int64_t at;
};

struct energy {
    VECTOR_OF(struct energy_counter);
};

static struct energy_counter *find_counter(struct energy *energy, const char *key)
{
    struct energy_counter *counter;

    vector_for_each (counter, energy)
        if (strcmp(counter->key, key) == 0)
            return counter;
    return NULL;
}

static void add_counter(struct energy *energy, const char *key, uint64_t microjoules, int64_t now)
{
    char *copy = strdup(key);
    struct energy_counter *counter = copy == NULL ? NULL : vector_append(energy);

    if (counter == NULL)
        free(copy);
    else
        *counter = (struct energy_counter){.key = copy, .microjoules = microjoules, .at = now};
}

static struct figure power_between(const struct energy_counter *before, uint64_t microjoules,
                                   int64_t now)
{
    int64_t milliseconds = (now - before->at) / (DURATION_SECOND / 1000);
    uint64_t milliwatts; /* microjoules per millisecond */

    if (now - before->at > ELAPSED_MAX || microjoules < before->microjoules)
        return (struct figure){0};
    milliwatts = (microjoules - before->microjoules) / (uint64_t)milliseconds;
    if (milliwatts > MILLIWATTS_MAX)
        return (struct figure){0};
    return load_figure_sampled((int64_t)milliwatts, clock_read(CLOCK_REALTIME));
}

struct figure energy_power(struct energy **energy, const char *key, uint64_t microjoules,
                           int64_t now)
{
    struct figure power = {0};
    struct energy_counter *counter;

    if (*energy == NULL)
        *energy = calloc(1, sizeof(**energy));
    if (*energy == NULL)
        return power;
    counter = find_counter(*energy, key);
    if (counter == NULL) {
        add_counter(*energy, key, microjoules, now);
        return power;
    }
    if (now - counter->at < ELAPSED_MIN)
        return power;
    power = power_between(counter, microjoules, now);
    counter->microjoules = microjoules;
    counter->at = now;
    return power;
}

void energy_destroy(struct energy *energy)
{
    struct energy_counter *counter;

    if (energy == NULL)
        return;
    vector_for_each (counter, energy)
        free(counter->key);
    vector_finish(energy);
    free(energy);
}
