/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks what a failed call left in its error.
 */
#ifndef TESTS_ASSERT_ERROR_H
#define TESTS_ASSERT_ERROR_H

#include <berth/error.h>

#include "support/unit.h"

/* Checks that `call` returns `wanted_code`, and that `error` has this code and exactly this
 * message. A macro, so that the report names the caller's line. */
#define assert_fails(call, wanted_code, error, wanted_message)   \
    do {                                                         \
        assert_int_equal((call), (wanted_code));                 \
        assert_int_equal((error)->code, (wanted_code));          \
        assert_string_equal((error)->message, (wanted_message)); \
    } while (0)

#endif
