/* SPDX-License-Identifier: Apache-2.0
 *
 * Addresses to listen on, and the names in Host.
 */
#include "support/unit.h"

#include <string.h>

#include "base/count.h"
#include "web/listen_address.h"

static struct listen_address address_of(const char *string)
{
    struct listen_address address;
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(listen_address_parse(string, &address, &error), 0);
    return address;
}

static void addresses(void **state)
{
    static const struct {
        const char *given;
        const char *shown;
        bool is_loopback;
    } cases[] = {
        {"127.0.0.1:7411", "127.0.0.1:7411", true},
        {"localhost:0", "127.0.0.1:0", true},
        {"127.9.9.9:65535", "127.9.9.9:65535", true},
        {"[::1]:7411", "[::1]:7411", true},
        {"0.0.0.0:80", "0.0.0.0:80", false},
        {"[::]:80", "[::]:80", false},
        {"10.1.2.3:80", "10.1.2.3:80", false},
        {"[2001:DB8::1]:80", "[2001:db8::1]:80", false},
        {"[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct listen_address address = address_of(cases[i].given);

        assert_string_equal(listen_address_format(&address).text, cases[i].shown);
        assert_int_equal(listen_address_is_loopback(&address), cases[i].is_loopback);
    }
}

static void what_is_no_address(void **state)
{
    static const char *const cases[] = {
        "",
        "7411",
        ":7411",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.1:80",
        "example:80",
        "::1:80",
        "[::1]",
        "[::1]:",
        "[::1]80",
        "[::1:80",
        "[127.0.0.1]:80",
        "1.2.3.4:-1",
        "1.2.3.4:65536",
        "1.2.3.4:80 ",
        "256.0.0.1:80",
        "[localhost]:1",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct listen_address address = {.length = 99};
        struct berth_error error = BERTH_ERROR_INIT;

        assert_int_equal(listen_address_parse(cases[i], &address, &error), BERTH_ERROR_INVALID);
        assert_non_null(strstr(error.message, "expected ADDRESS:PORT"));
        assert_int_equal(address.length, 99);
    }
}

static void hosts(void **state)
{
    static const struct {
        const char *address;
        const char *host;
        bool accepted;
    } cases[] = {
        {"127.0.0.1:1", "localhost", true},
        {"127.0.0.1:1", "LOCALHOST:99", true},
        {"127.0.0.1:1", "127.1.2.3", true},
        {"127.0.0.1:1", "[::1]", true},
        {"127.0.0.1:1", "gpu.example", true},
        {"127.0.0.1:1", "Gpu.Example:443", true},
        {"127.0.0.1:1", "gpu.exampl", false},
        {"127.0.0.1:1", "gpu.example.", false},
        {"127.0.0.1:1", "evil", false},
        {"127.0.0.1:1", "10.0.0.1", false},
        {"127.0.0.1:1", "", false},
        {"127.0.0.1:1", ":80", false},
        {"127.0.0.1:1", "localhost:80:80", false},
        {"127.0.0.1:1", "localhost:123456", false},
        {"127.0.0.1:1", "[::1", false},
        {"127.0.0.1:1", "[::1]x", false},
        {"127.0.0.1:1", "[localhost]", false},
        {"10.0.0.1:1", "10.0.0.1:1", true},
        {"10.0.0.1:1", "10.0.0.2:1", false},
        {"[2001:db8::1]:1", "[2001:DB8:0::1]", true},
        {"[2001:db8::1]:1", "[2001:db8::2]", false},
        {"[2001:db8::1]:1", "10.0.0.1", false},
        {"0.0.0.0:1", "192.0.2.1", true},
        {"[::]:1", "192.0.2.1:80", true},
        {"0.0.0.0:1", "other.example", false},
        {"127.0.0.1:1", "10.1.2.3:80", true},
        {"127.0.0.1:1", "[fd00:0::7]", true},
        {"127.0.0.1:1", "fd00::7", false},
        {"127.0.0.1:1", "[10.1.2.3]", false},
    };
    struct string_list names = {0};

    (void)state;
    assert_int_equal(string_list_append(&names, "gpu.example"), 0);
    assert_int_equal(string_list_append(&names, "10.1.2.3"), 0);
    assert_int_equal(string_list_append(&names, "[fd00::7]"), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct listen_address address = address_of(cases[i].address);
        struct span host = {cases[i].host, strlen(cases[i].host)};

        assert_int_equal(listen_address_accepts_host(&address, &names, host), cases[i].accepted);
    }
    string_list_finish(&names);
}

static void names_of_hosts(void **state)
{
    static const char *const good[] = {"gpu", "gpu-1.lab.example", "g_1", "10.1.2.3", "[fd00::7]"};
    static const char *const bad[] = {
        "",         "two words",    "gpu:80", "http://gpu", "gpu/",       "fd00::7",
        "[fd00::7", "[fd00::7]:80", "[]",     "[gpu]",      "[10.1.2.3]",
    };
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(good); i++)
        assert_int_equal(listen_address_check_name(good[i], &error), 0);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(listen_address_check_name(bad[i], &error), BERTH_ERROR_INVALID);
}

static void whose_connection(void **state)
{
    struct listen_address one = address_of("10.0.0.1:1");
    struct listen_address same = address_of("10.0.0.1:2");
    struct listen_address other = address_of("10.0.0.2:1");
    struct listen_address six = address_of("[2001:db8::1]:1");
    struct listen_address near = address_of("[2001:db8::ffff]:1");
    struct listen_address far = address_of("[2001:db8:1::1]:1");

    (void)state;
    assert_true(listen_address_same_host(&one.any, &same.any));
    assert_false(listen_address_same_host(&one.any, &other.any));
    assert_false(listen_address_same_host(&one.any, &six.any));
    assert_true(listen_address_same_host(&six.any, &near.any));
    assert_false(listen_address_same_host(&six.any, &far.any));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(what_is_no_address),
        cmocka_unit_test(hosts),
        cmocka_unit_test(names_of_hosts),
        cmocka_unit_test(whose_connection),
    };

    return cmocka_run_group_tests_name("web listen", tests, NULL, NULL);
}
