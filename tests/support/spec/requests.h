/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests in which every member is set, and random requests.
 */
#ifndef TESTS_REQUESTS_H
#define TESTS_REQUESTS_H

#include "support/unit.h"

#include <string.h>

#include "model/request.h"
#include "support/engine/machines.h"
#include "support/random.h"

/* Fills a request. Every member differs from request_init(). The caller finishes it. */
static inline void request_fill(struct request *request)
{
    *request = (struct request){
        .gpus = {.min = 2, .max = 4, .all = true},
        .replicas = 3,
        .vendor_rule = VENDOR_RULE_EXACT,
        .vendor = VENDOR_DRI,
        .model = copy_of("A100"),
        .min_free = optional_number_of(40 * GIB),
        .min_memory = optional_number_of(80 * GIB),
        .min_cap = {.known = true, .major = 8, .minor = 10},
        .sharing = SHARING_TIME_SLICE,
        .share = optional_number_of(SHARE_WHOLE / 4),
        .memory = optional_number_of(GIB),
        .mps_pipe_dir = copy_of("/run/mps/pipe"),
        .mps_log_dir = copy_of("/run/mps/log"),
        .cpus = optional_number_of(4000),
        .host_memory = optional_number_of(2 * GIB),
        .scheduling = SCHEDULING_SPREAD,
        .priority = PRIORITY_HIGH,
        .policy = copy_of("first"),
        .affinity = copy_of("team"),
        .opportunistic = true,
        .ranks = true,
        .or_cpu = true,
        .nonblock = true,
        .wait = optional_number_of(5),
        .time = optional_number_of(6),
        .name = copy_of("train"),
    };
    assert_int_equal(device_id_list_parse(&request->wanted, "nvidia0,amd1,dri2", NULL), 0);
    assert_int_equal(device_id_list_parse(&request->avoided, "nvidia0.3", NULL), 0);
}

static inline struct optional_number random_optional(struct test_random *random)
{
    if (test_random_below(random, 2) == 0)
        return (struct optional_number){0};
    return optional_number_of(test_random_any_length(random));
}

/* Returns NULL, or a text of any bytes but zero, up to the maximum length. */
static inline char *random_text(struct test_random *random)
{
    char text[REQUEST_TEXT_MAX + 1];
    size_t length;

    if (test_random_below(random, 2) == 0)
        return NULL;
    length = test_random_any_length(random) % sizeof(text);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)(1 + test_random_below(random, 255));
    text[length] = '\0';
    return copy_of(text);
}

static inline void random_ids(struct test_random *random, struct device_id_list *list)
{
    for (uint64_t rest = test_random_below(random, 4); rest > 0; rest--) {
        struct device_id *id = vector_append(list);

        assert_non_null(id);
        *id = (struct device_id){
            .vendor = (enum vendor)test_random_below(random, VENDOR_DRI + 1),
            .index = (uint32_t)test_random_below(random, DEVICE_INDEX_MAX + 1),
            .mig = test_random_below(random, 2) == 0 ? DEVICE_NO_MIG
                                                     : (uint32_t)test_random_below(random, 7),
        };
    }
}

/* Returns 1 half of the time, else any number. */
static inline uint32_t random_count(struct test_random *random)
{
    return test_random_below(random, 2) == 0 ? 1 : (uint32_t)test_random_any_length(random);
}

/* Fills a request with random values, valid or not. The caller finishes it. */
static inline void request_randomise(struct request *request, struct test_random *random)
{
    uint64_t bits = test_random_next(random);

    *request = (struct request){
        .gpus = {random_count(random), random_count(random), (bits & 1) != 0},
        .replicas = random_count(random),
        .vendor_rule = (enum vendor_rule)test_random_below(random, VENDOR_RULE_EXACT + 1),
        .vendor = (enum vendor)test_random_below(random, VENDOR_DRI + 1),
        .model = random_text(random),
        .min_free = random_optional(random),
        .min_memory = random_optional(random),
        .min_cap = {.known = (bits & 2) != 0},
        .sharing = (enum sharing)test_random_below(random, SHARING_TIME_SLICE + 1),
        .share = random_optional(random),
        .memory = random_optional(random),
        .mps_pipe_dir = random_text(random),
        .mps_log_dir = random_text(random),
        .cpus = random_optional(random),
        .host_memory = random_optional(random),
        .scheduling = (enum scheduling)test_random_below(random, SCHEDULING_SPREAD + 1),
        .priority = (enum priority)test_random_below(random, PRIORITY_HIGH + 1),
        .policy = random_text(random),
        .affinity = random_text(random),
        .opportunistic = (bits & 4) != 0,
        .ranks = (bits & 8) != 0,
        .or_cpu = (bits & 16) != 0,
        .nonblock = (bits & 32) != 0,
        .wait = random_optional(random),
        .time = random_optional(random),
        .name = random_text(random),
    };
    if (request->min_cap.known) {
        request->min_cap.major = (uint16_t)test_random_any_length(random);
        request->min_cap.minor = (uint16_t)test_random_any_length(random);
    }
    random_ids(random, &request->wanted);
    random_ids(random, &request->avoided);
}

#endif
