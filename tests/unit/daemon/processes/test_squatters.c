/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/string_list.h"
#include "daemon/processes/squatters.h"

#include "base/count.h"

static void programs_are_told_by_their_names(void **state)
{
    static const struct {
        const char *command;
        bool excepted;
    } cases[] = {
        {"Xorg", true},
        {"/usr/lib/xorg/Xorg :0 -seat seat0", true},
        {"/usr/bin/gnome-shell", true},
        {"nvidia-smi --query-gpu=index", true},
        {"/usr/bin/nvidia-cuda-mps-server -force-tegra", true},
        {"own-compositor", true},
        {"/opt/x/own-compositor -v", true},
        {"python /usr/bin/Xorg", false},
        {"Xorg-like", false},
        {"xorg", false},
        {"/Xorg/python", false},
        {"own", false},
        {" Xorg", false},
        {"", false},
        {"/", false},
        {NULL, false},
    };
    struct string_list more = {0};

    (void)state;
    assert_int_equal(string_list_append(&more, "own-compositor"), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (squatters_excepts(cases[i].command, &more) != cases[i].excepted)
            fail_msg("%s", cases[i].command);
    }
    string_list_finish(&more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_are_told_by_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
