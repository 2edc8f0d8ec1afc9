/* SPDX-License-Identifier: Apache-2.0
 *
 * Users in error messages have names.
 */
#include "support/unit.h"

#include "base/error.h"
#include "base/system/user_names.h"

static void check_explained(const char *message, const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(
        user_names_explain(&error, error_set(&error, BERTH_ERROR_PERMISSION, "%s", message)),
        BERTH_ERROR_PERMISSION);
    assert_string_equal(error.message, wanted);
    assert_int_equal(error.code, BERTH_ERROR_PERMISSION);
}

static void users_in_messages_have_names(void **state)
{
    (void)state;
    check_explained("/run/x: expected a directory of user 4000000001, got one of user 0; set Y",
                    "/run/x: expected a directory of user 4000000001, got one of root; set Y");
    check_explained("user 0", "root");
}

static void other_messages_stay(void **state)
{
    (void)state;
    check_explained("", "");
    check_explained("superuser 0, user 0x, user name", "superuser 0, user 0x, user name");
    assert_int_equal(user_names_explain(NULL, BERTH_ERROR_IO), BERTH_ERROR_IO);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_in_messages_have_names),
        cmocka_unit_test(other_messages_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
