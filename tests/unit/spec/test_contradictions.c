/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "spec/contradictions.h"

#include "base/count.h"
#include "support/documents.h"

#define VALUES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct movable box = {.path = "box", .elsewhere = "shelf.box"};

static bool holds(const char *text, const char *path, enum condition_test test,
                  const char *const *values)
{
    const struct condition condition = {.path = path, .test = test, .values = values};
    struct document document = parse_string(text);
    bool result = contradictions_condition_holds(document.root, &box, &condition);

    document_finish(&document);
    return result;
}

static void null_counts_as_left_out(void **state)
{
    (void)state;
    assert_true(holds("{a: 1}", "a", CONDITION_GIVEN, NULL));
    assert_true(holds("{a: {}}", "a", CONDITION_GIVEN, NULL));
    assert_true(holds("{a: ''}", "a", CONDITION_GIVEN, NULL));
    assert_false(holds("{a: }", "a", CONDITION_GIVEN, NULL));
    assert_false(holds("{b: 1}", "a", CONDITION_GIVEN, NULL));
    assert_false(holds("{a: 1}", "a", CONDITION_LEFT_OUT, NULL));
    assert_true(holds("{a: ~}", "a", CONDITION_LEFT_OUT, NULL));
    assert_true(holds("{b: 1}", "a", CONDITION_LEFT_OUT, NULL));
    assert_true(holds("{a: ~}", "a", CONDITION_EMPTY, NULL));
    assert_false(holds("{a: 1}", "a", CONDITION_EMPTY, NULL));
    assert_false(holds("{b: 1}", "a", CONDITION_EMPTY, NULL));
}

static void values_are_compared_as_they_are_written(void **state)
{
    const char *const *values = VALUES("1", "two");
    static const struct {
        const char *text;
        bool one_of, another, not_given_as;
    } samples[] = {
        {"{a: 1}", true, false, false},   {"{a: '1'}", true, false, false},
        {"{a: two}", true, false, false}, {"{a: 1.0}", false, true, true},
        {"{a: Two}", false, true, true},  {"{a: ''}", false, true, true},
        {"{a: [1]}", false, true, true},  {"{a: {}}", false, true, true},
        {"{a: }", false, false, true},    {"{b: 1}", false, false, true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(samples); i++) {
        const char *text = samples[i].text;

        assert_int_equal(holds(text, "a", CONDITION_ONE_OF, values), samples[i].one_of);
        assert_int_equal(holds(text, "a", CONDITION_ANOTHER, values), samples[i].another);
        assert_int_equal(holds(text, "a", CONDITION_NOT_GIVEN_AS, values), samples[i].not_given_as);
    }
}

static void paths_lead_into_mappings(void **state)
{
    (void)state;
    assert_true(holds("{a: {b: {c: 1}}}", "a.b.c", CONDITION_GIVEN, NULL));
    assert_false(holds("{a: {b: {c: 1}}}", "a.b.d", CONDITION_GIVEN, NULL));
    assert_false(holds("{a: {b: [c]}}", "a.b.c", CONDITION_GIVEN, NULL));
    assert_false(holds("{a: b}", "a.b", CONDITION_GIVEN, NULL));
    assert_false(holds("{a: {b: 1}}", "b", CONDITION_GIVEN, NULL));
    assert_false(holds("{ab: 1}", "a", CONDITION_GIVEN, NULL));
    assert_false(holds("{a: 1}", "ab", CONDITION_GIVEN, NULL));
}

static void a_movable_record_is_found_where_it_stands(void **state)
{
    (void)state;
    assert_true(holds("{box: {a: 1}}", "box.a", CONDITION_GIVEN, NULL));
    assert_true(holds("{shelf: {box: {a: 1}}}", "box.a", CONDITION_GIVEN, NULL));
    assert_true(holds("{box: ~, shelf: {box: {a: 1}}}", "box.a", CONDITION_GIVEN, NULL));
    assert_false(holds("{box: {}, shelf: {box: {a: 1}}}", "box.a", CONDITION_GIVEN, NULL));
    assert_true(holds("{shelf: ~}", "box.a", CONDITION_LEFT_OUT, NULL));
    assert_false(holds("{shelf: {box: {}}}", "box", CONDITION_GIVEN, NULL));
    assert_true(holds("{shelf: {box: {}}}", "shelf.box", CONDITION_GIVEN, NULL));
    assert_false(holds("{box: {}}", "shelf.box", CONDITION_GIVEN, NULL));
}

static const struct contradiction rows[] = {
    {.at = "box.lid",
     .sentence = "a red box has a lid",
     .conditions = {{.path = "box.colour", .test = CONDITION_ONE_OF, .values = VALUES("red")},
                    {.path = "box.lid", .test = CONDITION_LEFT_OUT}}},
    {.at = "weight",
     .sentence = "four are too many",
     .conditions = {{.path = "weight", .test = CONDITION_GIVEN},
                    {.path = "height", .test = CONDITION_GIVEN},
                    {.path = "length", .test = CONDITION_GIVEN},
                    {.path = "width", .test = CONDITION_GIVEN}}},
    {.at = "height",
     .sentence = "no height without a box",
     .conditions = {{.path = "height", .test = CONDITION_GIVEN},
                    {.path = "box", .test = CONDITION_LEFT_OUT},
                    {.path = "shelf.box", .test = CONDITION_LEFT_OUT}}},
    {0},
};

static void check(const char *text, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document = parse_string(text);
    const struct field_reading reading = {.document = &document, .error = &error};
    int code = contradictions_check(&reading, rows, &box, document.root);

    assert_string_equal(error.message, message);
    assert_int_equal(code, *message == '\0' ? 0 : BERTH_ERROR_INVALID);
    document_finish(&document);
}

static void the_first_row_that_holds_is_told_with_its_place(void **state)
{
    (void)state;
    check("{}", "");
    check("{box: {colour: red, lid: 1}}", "");
    check("{box: {colour: green}}", "");
    check("{box: {colour: red, lid: }}", "file.yaml:1:26: a red box has a lid");
    check("{box: {colour: red}}", "file.yaml:1:7: a red box has a lid");
    check("shelf:\n  box:\n    colour: red\n", "file.yaml:3:5: a red box has a lid");
    check("height: 1\nlength: 2\nwidth: 3\nbox: {}\n", "");
    check("height: 1\nlength: 2\nwidth: 3\nweight: 4\n", "file.yaml:4:9: four are too many");
    check("\nheight: 1\n", "file.yaml:2:9: no height without a box");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_counts_as_left_out),
        cmocka_unit_test(values_are_compared_as_they_are_written),
        cmocka_unit_test(paths_lead_into_mappings),
        cmocka_unit_test(a_movable_record_is_found_where_it_stands),
        cmocka_unit_test(the_first_row_that_holds_is_told_with_its_place),
    };

    return cmocka_run_group_tests_name("contradictions", tests, NULL, NULL);
}
