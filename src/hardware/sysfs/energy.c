/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/energy.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "base/vector.h"

/* Counters are written every few milliseconds; what was minutes ago is not how it is now. */
#define SHORTEST   (DURATION_SECOND / 20)
#define LENGTH_MAX (2 * DURATION_MINUTE)

/* No device takes a megawatt. */
#define MILLIWATTS_MAX (1000 * 1000 * 1000)

struct noted {
    char *key;
    uint64_t microjoules;
    int64_t at;
};

struct energy {
    VECTOR_OF(struct noted);
};

static struct noted *find(struct energy *energy, const char *key)
{
    struct noted *noted;

    vector_for_each (noted, energy)
        if (strcmp(noted->key, key) == 0)
            return noted;
    return NULL;
}

static void add(struct energy *energy, const char *key, uint64_t microjoules, int64_t now)
{
    char *copy = strdup(key);
    struct noted *noted = copy == NULL ? NULL : vector_append(energy);

    if (noted == NULL)
        free(copy);
    else
        *noted = (struct noted){.key = copy, .microjoules = microjoules, .at = now};
}

static struct figure power_between(const struct noted *before, uint64_t microjoules, int64_t now)
{
    int64_t milliseconds = (now - before->at) / (DURATION_SECOND / 1000);
    uint64_t milliwatts; /* which microjoules in a millisecond are */

    if (now - before->at > LENGTH_MAX || microjoules < before->microjoules)
        return (struct figure){0};
    milliwatts = (microjoules - before->microjoules) / (uint64_t)milliseconds;
    if (milliwatts > MILLIWATTS_MAX)
        return (struct figure){0};
    return figure_sampled((int64_t)milliwatts, clock_read(CLOCK_REALTIME));
}

struct figure energy_power(struct energy **energy, const char *key, uint64_t microjoules,
                           int64_t now)
{
    struct figure power = {0};
    struct noted *noted;

    if (*energy == NULL)
        *energy = calloc(1, sizeof(**energy));
    if (*energy == NULL)
        return power;
    noted = find(*energy, key);
    if (noted == NULL) {
        add(*energy, key, microjoules, now);
        return power;
    }
    if (now - noted->at < SHORTEST)
        return power;
    power = power_between(noted, microjoules, now);
    noted->microjoules = microjoules;
    noted->at = now;
    return power;
}

void energy_destroy(struct energy *energy)
{
    struct noted *noted;

    if (energy == NULL)
        return;
    vector_for_each (noted, energy)
        free(noted->key);
    vector_finish(energy);
    free(energy);
}
