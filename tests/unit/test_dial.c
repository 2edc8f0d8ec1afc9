/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_daemon.h"

#include "client/dial.h"

static void the_first_command_starts_a_daemon(void **state)
{
    struct pool_address address = fake_address(state);
    struct berth_error error = BERTH_ERROR_INIT;
    int socket = -1;

    assert_int_equal(dial(&address, DIAL_START, &socket, &error), 0);
    assert_int_equal(fcntl(socket, F_GETFD), FD_CLOEXEC);
    close(socket);
    assert_int_equal(dial(&address, DIAL_ONLY, &socket, &error), 0);
    close(socket);
    assert_int_equal(fake_end_all(address.directory), 1);
    pool_address_finish(&address);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        fake_daemon_test(the_first_command_starts_a_daemon),
    };

    fake_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
