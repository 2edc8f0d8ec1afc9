/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_daemon.h"

#include "client/session.h"

#include "support/assert_error.h"

static void answers_reach_who_asked(void **state)
{
    struct pool_address address = fake_address(state);
    struct berth_error error = BERTH_ERROR_INIT;
    struct wire_message question = {.type = WIRE_HELLO};
    struct wire_message answer = {0};
    struct session session;

    assert_int_equal(session_open(&session, &address, DIAL_START, &error), 0);
    for (uint64_t i = 1; i < 4; i++) {
        assert_int_equal(session_ask(&session, &question, WIRE_POOL, &answer, &error), 0);
        assert_int_equal(answer.number, i);
        assert_int_equal(answer.type, WIRE_POOL);
        wire_message_finish(&answer);
    }
    session_close(&session);
    pool_address_finish(&address);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        fake_daemon_test(answers_reach_who_asked),
    };

    fake_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
