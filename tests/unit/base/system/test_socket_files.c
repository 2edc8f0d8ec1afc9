/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/system/socket_files.h"

#include "base/count.h"
#include "base/text/text.h"

static void files_are_beside_the_socket(void **state)
{
    static const struct {
        const char *socket;
        const char *ending;
        const char *wanted;
    } cases[] = {
        {"/run/berth/berth.sock", ".journal", "/run/berth/berth.journal"},
        {"/run/berth/berth.sock", ".lock", "/run/berth/berth.lock"},
        {"/run/berth.sock/socket", ".lock", "/run/berth.sock/socket.lock"},
        {"/run/berth/other", ".lock", "/run/berth/other.lock"},
        {"/run/berth/a.socket", ".lock", "/run/berth/a.socket.lock"},
        {"a.sock.sock", ".lock", "a.sock.lock"},
        /* A name without a stem keeps it, so that the file is not hidden. */
        {".sock", ".lock", ".sock.lock"},
        {"/.sock", ".lock", "/.sock.lock"},
        {"sock", ".lock", "sock.lock"},
        {"", ".lock", ".lock"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct text path = {0};

        text_append(&path, ">");
        socket_files_append(cases[i].socket, cases[i].ending, &path);
        assert_string_equal(text_string(&path) + 1, cases[i].wanted);
        text_finish(&path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_beside_the_socket),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
