/* SPDX-License-Identifier: Apache-2.0
 *
 * The path of a pool's history, and when a recorder is restarted.
 */
#include "support/unit.h"

#include "base/count.h"
#include "base/text/quantity.h"
#include "daemon/history_file.h"
#include "daemon/recorder.h"

static const char machine[] = "/run/berth/berth.sock";
static const char own[] = "/tmp/berth-1/berth.sock";

static void every_pool_has_its_place(void **state)
{
    static const struct {
        struct pool_settings settings;
        const char *home;
        const char *state;
        const char *wanted;
    } rows[] = {
        {{.socket = machine}, "/root", "/root/x", "/var/lib/berth/history.db"},
        {{.socket = own, .own = true}, "/home/a", NULL, "/home/a/.local/state/berth/history.db"},
        {{.socket = own, .own = true}, "/home/a", "", "/home/a/.local/state/berth/history.db"},
        {{.socket = own, .own = true}, "/home/a", "x", "/home/a/.local/state/berth/history.db"},
        {{.socket = own, .own = true}, "/home/a", "/s", "/s/berth/history.db"},
        {{.socket = own, .own = true}, "/", NULL, "/.local/state/berth/history.db"},
        {{.socket = own, .own = true}, NULL, NULL, "/tmp/berth-1/berth.history"},
        {{.socket = own, .own = true}, "", "", "/tmp/berth-1/berth.history"},
        {{.socket = own, .own = true, .inventory = "/i"}, "/h", "/s", "/tmp/berth-1/berth.history"},
        {{.socket = machine, .inventory = "/i"}, "/h", "/s", "/run/berth/berth.history"},
        {{.socket = "/srv/x.sock"}, "/h", "/s", "/srv/x.history"},
        {{.socket = "/srv/x"}, "/h", "/s", "/srv/x.history"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct text path = {0};

        history_file_default(&rows[i].settings, rows[i].home, rows[i].state, &path);
        assert_string_equal(text_string(&path), rows[i].wanted);
        text_finish(&path);
    }
}

static void pauses_grow(void **state)
{
    int64_t last = 0;

    (void)state;
    assert_int_equal(recorder_restart_after(0), RECORDER_RESTART_FIRST);
    assert_int_equal(recorder_restart_after(1), RECORDER_RESTART_FIRST);
    assert_int_equal(recorder_restart_after(2), 2 * RECORDER_RESTART_FIRST);
    for (unsigned failures = 1; failures < 20; failures++) {
        assert_true(recorder_restart_after(failures) >= last);
        last = recorder_restart_after(failures);
    }
    assert_int_equal(last, RECORDER_RESTART_LAST);
    assert_int_equal(recorder_restart_after(UINT32_MAX), RECORDER_RESTART_LAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pool_has_its_place),
        cmocka_unit_test(pauses_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
