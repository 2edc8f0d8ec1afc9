/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/link.h"

#include "base/count.h"

static const struct {
    enum link_kind kind;
    const char *name;
    bool is_fabric;
} kinds[] = {
    {LINK_NVLINK, "nvlink", true}, {LINK_XGMI, "xgmi", true}, {LINK_PSB, "psb", false},
    {LINK_PIX, "pix", false},      {LINK_PXB, "pxb", false},  {LINK_PHB, "phb", false},
    {LINK_NODE, "node", false},    {LINK_SYS, "sys", false},
};

static void every_kind_has_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        int value = -1;

        assert_string_equal(choice_name(link_kind_names, (int)kinds[i].kind), kinds[i].name);
        assert_int_equal(choice_parse(link_kind_names, kinds[i].name, &value, NULL), 0);
        assert_int_equal(value, kinds[i].kind);
    }
    assert_null(choice_name(link_kind_names, LINK_SYS + 1));
    assert_null(link_kind_names[COUNT(kinds)].name);
}

static void only_two_kinds_are_fabric(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++)
        assert_int_equal(link_is_fabric(kinds[i].kind), kinds[i].is_fabric);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_name),
        cmocka_unit_test(only_two_kinds_are_fabric),
    };

    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
