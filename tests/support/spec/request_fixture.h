/* SPDX-License-Identifier: Apache-2.0
 *
 * A request for each test to change.
 */
#ifndef TESTS_REQUEST_FIXTURE_H
#define TESTS_REQUEST_FIXTURE_H

#include "support/unit.h"

#include "model/request.h"

/* A setup function for cmocka: the state is a plain request, the test's own. */
static inline int request_set_up(void **state)
{
    static struct request request;

    request_init(&request);
    *state = &request;
    return 0;
}

/* The teardown function, which cmocka also calls after a failure. */
static inline int request_tear_down(void **state)
{
    request_finish(*state);
    return 0;
}

#define request_test(function) \
    cmocka_unit_test_setup_teardown(function, request_set_up, request_tear_down)

#endif
