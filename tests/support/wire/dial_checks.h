/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of the result of dialling.
 */
#ifndef TESTS_DIAL_CHECKS_H
#define TESTS_DIAL_CHECKS_H

#include "support/wire/fake_daemon.h"

#include "support/assert_error.h"

static inline void assert_dials(const struct pool_address *address, enum dial_mode how)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int socket = -1;
    int code = dial(address, how, &socket, &error);

    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    assert_int_equal(fcntl(socket, F_GETFD), FD_CLOEXEC);
    assert_int_equal(fcntl(socket, F_GETFL) & O_NONBLOCK, 0);
    close(socket);
}

/* Checks that dialling fails with this code, and with `place` followed by `message` as its message.
 */
static inline void assert_dialling_fails(const struct pool_address *address, enum dial_mode how,
                                         int code, const char *place, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int socket = -7;
    char *whole;

    assert_true(asprintf(&whole, "%s%s", place, message) > 0);
    assert_fails(dial(address, how, &socket, &error), code, &error, whole);
    assert_int_equal(socket, -7);
    free(whole);
}

#endif
