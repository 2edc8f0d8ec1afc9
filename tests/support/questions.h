/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions to placement_find: a machine, a request, what is busy and what has to be included.
 */
#ifndef TESTS_QUESTIONS_H
#define TESTS_QUESTIONS_H

#include "support/unit.h"

#include "engine/placement/placement.h"
#include "engine/policy/policies.h"
#include "support/machines.h"

struct question {
    struct machine machine;
    struct request request;
    struct bitset busy;
    struct bitset must;
};

/* A plain request to a machine with these devices (see machine_add_ids), none of them busy. */
static inline void question_init(struct question *question, const char *ids)
{
    *question = (struct question){0};
    machine_add_ids(&question->machine, ids);
    request_init(&question->request);
    assert_int_equal(bitset_init(&question->busy, question->machine.devices.count), 0);
    assert_int_equal(bitset_init(&question->must, question->machine.devices.count), 0);
}

static inline void question_finish(struct question *question)
{
    machine_finish(&question->machine);
    request_finish(&question->request);
    bitset_finish(&question->busy);
    bitset_finish(&question->must);
}

/* Adds the devices of a comma-separated list to `set`, which is question->busy or ->must. */
static inline void question_mark(const struct question *question, struct bitset *set,
                                 const char *ids)
{
    struct device_id_list list = {0};
    const struct device_id *id;

    assert_int_equal(device_id_list_parse(&list, ids, NULL), 0);
    vector_for_each (id, &list)
        bitset_add(set, device_list_find(&question->machine.devices, *id));
    vector_finish(&list);
}

/* Asks. Returns as placement_find. */
static inline int question_ask_policy(const struct question *question, const struct policy *policy,
                                      struct placement *ret_placement, struct berth_error *error)
{
    return placement_find(
        &(struct placement_question){
            .machine = &question->machine,
            .request = &question->request,
            .policy = policy,
            .busy = &question->busy,
            .must = &question->must,
        },
        ret_placement, error);
}

/* The same with the policy `first`. */
static inline int question_ask(const struct question *question, struct placement *ret_placement,
                               struct berth_error *error)
{
    return question_ask_policy(question, &policy_first, ret_placement, error);
}

#endif
