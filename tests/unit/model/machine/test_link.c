/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/machine/link.h"

#include "base/count.h"
#include "support/random.h"
#include "support/steps.h"

static const struct {
    enum link_kind kind;
    const char *name;
    bool is_fabric;
} kinds[] = {
    {LINK_NVLINK, "nvlink", true}, {LINK_XGMI, "xgmi", true}, {LINK_PSB, "psb", false},
    {LINK_PIX, "pix", false},      {LINK_PXB, "pxb", false},  {LINK_PHB, "phb", false},
    {LINK_NODE, "node", false},    {LINK_SYS, "sys", false},
};

static void add_link(struct link_list *links, size_t low, size_t high, enum link_kind kind,
                     uint32_t lanes)
{
    struct link *link = vector_append(links);

    assert_non_null(link);
    *link = (struct link){.between = {low, high}, .kind = kind, .lanes = lanes};
}

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

static void without_a_link_nothing_is_known(void **state)
{
    struct link_list links = {0};

    (void)state;
    assert_null(link_list_best(&links, 0, 1));
    add_link(&links, 0, 1, LINK_NVLINK, 12);
    assert_null(link_list_best(&links, 0, 2));
    assert_null(link_list_best(&links, 1, 2));
    assert_null(link_list_best(&links, 0, 0));
    assert_null(link_list_best(&links, 1, 1));
    vector_finish(&links);
}

static void a_link_is_found_from_both_ends(void **state)
{
    struct link_list links = {0};

    (void)state;
    add_link(&links, 2, 5, LINK_PIX, 0);
    assert_ptr_equal(link_list_best(&links, 2, 5), &links.items[0]);
    assert_ptr_equal(link_list_best(&links, 5, 2), &links.items[0]);
    vector_finish(&links);
}

static void fabric_is_better_than_every_path(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        for (size_t j = 0; j < COUNT(kinds); j++) {
            struct link_list links = {0};

            if (!kinds[i].is_fabric || kinds[j].is_fabric)
                continue;
            add_link(&links, 0, 1, kinds[i].kind, 0);
            add_link(&links, 0, 1, kinds[j].kind, 0);
            assert_ptr_equal(link_list_best(&links, 0, 1), &links.items[0]);
            links.items[0].kind = kinds[j].kind;
            links.items[1].kind = kinds[i].kind;
            assert_ptr_equal(link_list_best(&links, 1, 0), &links.items[1]);
            vector_finish(&links);
        }
    }
}

enum { SLOTS = 5 };

/* The link of a pair of slots; -1: none. */
struct pair {
    int fabric;
    int path;
};

/* Gives every pair a fabric link, a path, both or none, in random order. */
static void make_links(struct test_random *random, struct link_list *links,
                       struct pair pairs[SLOTS][SLOTS])
{
    for (size_t round = 0; round < 2; round++) {
        for (size_t low = 0; low < SLOTS; low++) {
            for (size_t high = low + 1; high < SLOTS; high++) {
                bool fabric = (low + high + round) % 2 == 0;
                int kind = fabric ? (int)test_random_below(random, LINK_XGMI + 1)
                                  : LINK_PSB + (int)test_random_below(random, 6);

                if (test_random_below(random, 2) == 0)
                    kind = -1;
                else
                    add_link(links, low, high, (enum link_kind)kind, 0);
                *(fabric ? &pairs[low][high].fabric : &pairs[low][high].path) = kind;
            }
        }
    }
}

static void random_pairs_give_their_best(void **state)
{
    struct test_random random = {8};

    (void)state;
    for (unsigned long step = test_steps(1000); step > 0; step--) {
        struct pair pairs[SLOTS][SLOTS];
        struct link_list links = {0};

        make_links(&random, &links, pairs);
        for (size_t low = 0; low < SLOTS; low++) {
            for (size_t high = low + 1; high < SLOTS; high++) {
                const struct pair *pair = &pairs[low][high];
                const struct link *best = link_list_best(&links, high, low);

                assert_ptr_equal(link_list_best(&links, low, high), best);
                assert_int_equal(best == NULL ? -1 : (int)best->kind,
                                 pair->fabric >= 0 ? pair->fabric : pair->path);
                if (best != NULL) {
                    assert_int_equal(best->between[0], low);
                    assert_int_equal(best->between[1], high);
                }
            }
        }
        vector_finish(&links);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_name),
        cmocka_unit_test(only_two_kinds_are_fabric),
        cmocka_unit_test(without_a_link_nothing_is_known),
        cmocka_unit_test(a_link_is_found_from_both_ends),
        cmocka_unit_test(fabric_is_better_than_every_path),
        cmocka_unit_test(random_pairs_give_their_best),
    };

    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
