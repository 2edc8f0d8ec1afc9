/* SPDX-License-Identifier: Apache-2.0
 *
 * Input of placement_find: a machine, a request, the busy devices and the devices that must be
 * included.
 */
#ifndef TESTS_PLACEMENT_CASES_H
#define TESTS_PLACEMENT_CASES_H

#include "support/unit.h"

#include "engine/placement/placement.h"
#include "engine/policy/policies.h"
#include "support/engine/machines.h"

struct placement_case {
    struct machine machine;
    struct request request;
    struct bitset busy;
    struct bitset must;
};

/* Initialises a plain request to a machine with these devices (see machine_add_ids), none of them
 * busy. */
static inline void placement_case_init(struct placement_case *asked, const char *ids)
{
    *asked = (struct placement_case){0};
    machine_add_ids(&asked->machine, ids);
    request_init(&asked->request);
    assert_int_equal(bitset_init(&asked->busy, asked->machine.devices.count), 0);
    assert_int_equal(bitset_init(&asked->must, asked->machine.devices.count), 0);
}

static inline void placement_case_finish(struct placement_case *asked)
{
    machine_finish(&asked->machine);
    request_finish(&asked->request);
    bitset_finish(&asked->busy);
    bitset_finish(&asked->must);
}

/* Adds the devices of a comma-separated list to `set`, which is asked->busy or ->must. */
static inline void placement_case_mark(const struct placement_case *asked, struct bitset *set,
                                       const char *ids)
{
    struct device_id_list list = {0};
    const struct device_id *id;

    assert_int_equal(device_id_list_parse(&list, ids, NULL), 0);
    vector_for_each (id, &list)
        bitset_add(set, device_list_find(&asked->machine.devices, *id));
    vector_finish(&list);
}

/* Calls placement_find, and returns its result. */
static inline int placement_case_ask_policy(const struct placement_case *asked,
                                            const struct policy *policy,
                                            struct placement *ret_placement,
                                            struct berth_error *error)
{
    return placement_find(
        &(struct placement_question){
            .machine = &asked->machine,
            .request = &asked->request,
            .policy = policy,
            .busy = &asked->busy,
            .must = &asked->must,
        },
        ret_placement, error);
}

/* The same with the policy `first`. */
static inline int placement_case_ask(const struct placement_case *asked,
                                     struct placement *ret_placement, struct berth_error *error)
{
    return placement_case_ask_policy(asked, &policy_first, ret_placement, error);
}

#endif
