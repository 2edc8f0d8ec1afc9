/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "spec/configuration/history_file.h"

#include <stdlib.h>

#include "base/count.h"
#include "base/text/text.h"
#include "spec/configuration/configuration.h"
#include "support/failing_allocator.h"

#define MACHINE "/run/berth/berth.sock"

static const struct history_file_pool own = {.socket = "/tmp/u/berth.sock", .is_own = true};
static const struct history_file_pool machine = {.socket = MACHINE};

static void the_default_depends_on_the_pool(void **state)
{
    static const struct {
        struct history_file_pool pool;
        const char *home;
        const char *state;
        const char *wanted;
    } cases[] = {
        {{"/tmp/u/berth.sock", true, false}, "/home/u", "/state", "/state/berth/history.db"},
        {{"/tmp/u/berth.sock", true, false}, NULL, "/state", "/state/berth/history.db"},
        {{"/tmp/u/berth.sock", true, false},
         "/home/u",
         NULL,
         "/home/u/.local/state/berth/history.db"},
        {{"/tmp/u/berth.sock", true, false}, "/", NULL, "/.local/state/berth/history.db"},
        /* Only absolute paths count, as the XDG specification says. */
        {{"/tmp/u/berth.sock", true, false},
         "/home/u",
         "state",
         "/home/u/.local/state/berth/history.db"},
        {{"/tmp/u/berth.sock", true, false}, "home", "", "/tmp/u/berth.history"},
        {{"/tmp/u/berth.sock", true, false}, NULL, NULL, "/tmp/u/berth.history"},
        /* A user's pool at the machine's path, without a home. */
        {{MACHINE, true, false}, NULL, NULL, "/var/lib/berth/history.db"},
        /* Made-up devices have a history of their own. */
        {{"/tmp/u/berth.sock", true, true}, "/home/u", "/state", "/tmp/u/berth.history"},
        {{MACHINE, false, true}, NULL, NULL, "/run/berth/berth.history"},
        {{MACHINE, false, false}, "/root", "/state", "/var/lib/berth/history.db"},
        {{"/srv/other.sock", false, false}, "/root", "/state", "/srv/other.history"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct text path = {0};

        history_file_default(&cases[i].pool, cases[i].home, cases[i].state, &path);
        assert_string_equal(text_string(&path), cases[i].wanted);
        text_finish(&path);
    }
}

static void the_configuration_decides_first(void **state)
{
    char named[] = "/data/past.db";
    char *path = named;

    (void)state;
    setenv("XDG_STATE_HOME", "/from/environment", true);
    assert_int_equal(history_file_find(&own, &(struct configured_history){0}, &path, NULL), 0);
    assert_string_equal(path, "/from/environment/berth/history.db");
    free(path);
    assert_int_equal(
        history_file_find(&machine, &(struct configured_history){.file = named}, &path, NULL), 0);
    assert_string_equal(path, named);
    assert_ptr_not_equal(path, named);
    free(path);
    path = named;
    assert_int_equal(history_file_find(&own,
                                       &(struct configured_history){.is_off = true, .file = named},
                                       &path, NULL),
                     0);
    assert_null(path);
}

static int find_default(void *context)
{
    char *path;
    int code = history_file_find(&machine, &(struct configured_history){0}, &path, NULL);

    (void)context;
    assert_int_equal(code < 0, path == NULL);
    free(path);
    return code;
}

static void no_memory_is_an_error(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(find_default, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_depends_on_the_pool),
        cmocka_unit_test(the_configuration_decides_first),
        cmocka_unit_test(no_memory_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
