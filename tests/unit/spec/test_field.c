/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "spec/field.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/optional.h"
#include "base/string_list.h"
#include "support/failing_allocator.h"
#include "support/spec/documents.h"

/* A made-up record with a field of every type. */
enum colour { COLOUR_NONE, COLOUR_RED, COLOUR_GREEN };

struct part {
    char *name;
    uint32_t teeth;
};

struct part_list {
    VECTOR_OF(struct part);
};

struct crate {
    char *label;
    char *mark;
    struct optional_number pieces;
    uint32_t floor;
    struct optional_number weight;
    struct optional_number volume;
    enum colour colour;
    bool sealed;
    struct string_list owners;
    struct part spare;
    struct part_list parts;
};

static const struct choice colour_names[] = {
    {"red", COLOUR_RED},
    {"green", COLOUR_GREEN},
    {0},
};

static const struct field part_fields[] = {
    {"name", &field_text, .offset = offsetof(struct part, name), .required = true},
    {"teeth", &field_number32, .offset = offsetof(struct part, teeth), .max = UINT32_MAX},
};

static const struct record part_record = {
    .what = "a part",
    .fields = part_fields,
    .field_count = COUNT(part_fields),
};

static void *append_part(void *list)
{
    return vector_append((struct part_list *)list);
}

#define CRATE(member) offsetof(struct crate, member)

static const struct field crate_fields[] = {
    {"label", &field_text, .offset = CRATE(label), .required = true},
    {"mark", &field_text, .offset = CRATE(mark), .max = 4},
    {"pieces", &field_number, .offset = CRATE(pieces), .min = 2, .max = 10},
    {"floor", &field_number32, .offset = CRATE(floor), .max = 99},
    {"weight", &field_size, .offset = CRATE(weight)},
    {"volume", &field_size, .offset = CRATE(volume), .min = 1024, .max = 4096},
    {"colour", &field_choice, .offset = CRATE(colour), .choices = colour_names},
    {"sealed", &field_boolean, .offset = CRATE(sealed)},
    {"owners", &field_texts, .offset = CRATE(owners), .max = 6},
    {"spare", &field_record, .offset = CRATE(spare), .record = &part_record},
    {"parts", &field_records, .offset = CRATE(parts), .record = &part_record,
     .append = append_part},
};

/* A check of several fields together. */
static int check_crate(const struct field_reading *reading, const struct document_node *node,
                       void *target)
{
    const struct crate *crate = target;

    if (crate->pieces.known && crate->parts.count > crate->pieces.value)
        return document_error(reading->document, field_record_value(node, "parts"), reading->error,
                              BERTH_ERROR_INVALID, "parts: more than pieces");
    if (crate->colour == COLOUR_GREEN && crate->mark == NULL)
        return document_error(reading->document, field_record_value(node, "mark"), reading->error,
                              BERTH_ERROR_INVALID, "mark: green crates have one");
    return 0;
}

static const struct record crate_record = {
    .what = "a crate",
    .fields = crate_fields,
    .field_count = COUNT(crate_fields),
    .check = check_crate,
};

static void crate_finish(struct crate *crate)
{
    struct part *part;

    vector_for_each (part, &crate->parts)
        free(part->name);
    vector_finish(&crate->parts);
    string_list_finish(&crate->owners);
    free(crate->spare.name);
    free(crate->label);
    free(crate->mark);
}

static int read_crate(const struct document *document, struct crate *crate,
                      struct berth_error *error)
{
    const struct field_reading reading = {.document = document, .error = error};

    *crate = (struct crate){0};
    return field_read_record(&reading, &crate_record, document->root, crate);
}

/* Reads a crate, which must be valid. */
static struct crate good_crate(const char *text)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct document document = parse_string(text);
    struct crate crate;
    int code = read_crate(&document, &crate, &error);

    document_finish(&document);
    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    return crate;
}

/* A text, and the code and message of the failure to read it. */
struct refusal {
    const char *text;
    int code;
    const char *message; /* after the file's name */
};

static void check_refusals(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct document document = parse_string(refusals[i].text);
        struct crate crate;
        int code = read_crate(&document, &crate, &error);

        crate_finish(&crate);
        assert_int_equal(read_crate(&document, &crate, NULL), code);
        crate_finish(&crate);
        document_finish(&document);
        assert_int_equal(strncmp(error.message, FILE_NAME ":", strlen(FILE_NAME ":")), 0);
        assert_string_equal(error.message + strlen(FILE_NAME ":"), refusals[i].message);
        assert_int_equal(code, refusals[i].code);
        assert_int_equal(error.code, code);
    }
}

static void every_type_is_read(void **state)
{
    struct crate crate = good_crate("label: a b\n"
                                    "mark: 'äö'\n"
                                    "pieces: 10\n"
                                    "floor: 7\n"
                                    "weight: 1.5GiB\n"
                                    "volume: \"4K\"\n"
                                    "colour: green\n"
                                    "sealed: true\n"
                                    "owners: [one, \"2\", 3]\n"
                                    "spare: {name: spring, teeth: 0}\n"
                                    "parts:\n"
                                    "  - {name: wheel, teeth: 4294967295}\n"
                                    "  - {name: 12}\n");

    (void)state;
    assert_string_equal(crate.label, "a b");
    assert_string_equal(crate.mark, "äö");
    assert_true(crate.pieces.known);
    assert_int_equal(crate.pieces.value, 10);
    assert_int_equal(crate.floor, 7);
    assert_true(crate.weight.known);
    assert_int_equal(crate.weight.value, 1536U << 20);
    assert_int_equal(crate.volume.value, 4096);
    assert_int_equal(crate.colour, COLOUR_GREEN);
    assert_true(crate.sealed);
    assert_string_equal(crate.spare.name, "spring");
    assert_int_equal(crate.spare.teeth, 0);
    assert_int_equal(crate.owners.count, 3);
    assert_string_equal(crate.owners.items[0], "one");
    assert_string_equal(crate.owners.items[1], "2");
    assert_string_equal(crate.owners.items[2], "3");
    assert_int_equal(crate.parts.count, 2);
    assert_string_equal(crate.parts.items[0].name, "wheel");
    assert_int_equal(crate.parts.items[0].teeth, UINT32_MAX);
    assert_string_equal(crate.parts.items[1].name, "12");
    crate_finish(&crate);
}

static void what_is_left_out_stays_as_it_was(void **state)
{
    static const char *const texts[] = {
        "label: x",
        "{label: x, mark: null, pieces: ~, floor: , weight: Null, volume: NULL, colour: ~}",
        "{label: x, owners: null, parts: ~, sealed: , spare: ~}",
        "\"label\": x",
        "label: x\nowners: []\nparts: []\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct crate crate = good_crate(texts[i]);

        assert_string_equal(crate.label, "x");
        assert_null(crate.mark);
        assert_false(crate.pieces.known);
        assert_int_equal(crate.floor, 0);
        assert_false(crate.weight.known);
        assert_false(crate.volume.known);
        assert_int_equal(crate.colour, COLOUR_NONE);
        assert_false(crate.sealed);
        assert_null(crate.spare.name);
        assert_int_equal(crate.owners.count, 0);
        assert_int_equal(crate.parts.count, 0);
        crate_finish(&crate);
    }
}

static void texts_that_look_like_something_else_are_texts(void **state)
{
    struct crate crate = good_crate("{label: 'null', mark: 1.50, owners: [\"~\", yes]}");

    (void)state;
    assert_string_equal(crate.label, "null");
    assert_string_equal(crate.mark, "1.50");
    assert_string_equal(crate.owners.items[0], "~");
    assert_string_equal(crate.owners.items[1], "yes");
    crate_finish(&crate);
}

static void booleans_are_those_of_yaml(void **state)
{
    static const struct {
        const char *text;
        bool sealed;
    } samples[] = {
        {"{label: x, sealed: true}", true},   {"{label: x, sealed: True}", true},
        {"{label: x, sealed: TRUE}", true},   {"{label: x, sealed: false}", false},
        {"{label: x, sealed: False}", false}, {"{label: x, sealed: FALSE}", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(samples); i++) {
        struct crate crate = good_crate(samples[i].text);

        assert_int_equal(crate.sealed, samples[i].sealed);
        crate_finish(&crate);
    }
}

static void unknown_fields_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"label: x\nwieght: 5\n", BERTH_ERROR_SYNTAX,
         "2:1: a crate has no field 'wieght', did you mean 'weight'?"},
        {"{label: x, Colour: red}", BERTH_ERROR_SYNTAX,
         "1:12: a crate has no field 'Colour', did you mean 'colour'?"},
        {"{label: x, \"weight\\0\": 5}", BERTH_ERROR_SYNTAX,
         "1:12: a crate has no field 'weight?', did you mean 'weight'?"},
        {"{label: x, piece: 5}", BERTH_ERROR_SYNTAX,
         "1:12: a crate has no field 'piece', did you mean 'pieces'?"},
        {"{label: x, zzz: 5}", BERTH_ERROR_SYNTAX,
         "1:12: a crate has no field 'zzz', only label, mark, pieces, floor, weight, volume, "
         "colour, sealed, owners, spare, parts"},
        {"{label: x, ~: 5}", BERTH_ERROR_SYNTAX,
         "1:12: a crate has no field '~', only label, mark, pieces, floor, weight, volume, "
         "colour, sealed, owners, spare, parts"},
        {"{label: x, parts: [{name: y, tooth: 1}]}", BERTH_ERROR_SYNTAX,
         "1:30: a part has no field 'tooth', did you mean 'teeth'?"},
        {"{label: x, [a]: 5}", BERTH_ERROR_SYNTAX,
         "1:12: expected the name of a field of a crate, got a list of 1"},
        {"? {a: b}\n: 5", BERTH_ERROR_SYNTAX,
         "1:3: expected the name of a field of a crate, got a mapping"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void missing_and_doubled_fields_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"{}", BERTH_ERROR_SYNTAX, "1:1: a crate needs the field 'label'"},
        {"\n{mark: x}", BERTH_ERROR_SYNTAX, "2:1: a crate needs the field 'label'"},
        {"{label: ~}", BERTH_ERROR_SYNTAX, "1:9: label: expected a value, got nothing"},
        {"label:\nmark: x\n", BERTH_ERROR_SYNTAX, "1:7: label: expected a value, got nothing"},
        {"{label: x, parts: [{name: a}, {teeth: 3}]}", BERTH_ERROR_SYNTAX,
         "1:31: a part needs the field 'name'"},
        {"label: x\nmark: y\nlabel: z\n", BERTH_ERROR_SYNTAX, "3:1: label: given twice"},
        {"{label: x, mark: ~, mark: y}", BERTH_ERROR_SYNTAX, "1:21: mark: given twice"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void wrong_kinds_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"[a, b]", BERTH_ERROR_SYNTAX,
         "1:1: expected a crate with fields such as 'label', got a list of 2"},
        {"word", BERTH_ERROR_SYNTAX,
         "1:1: expected a crate with fields such as 'label', got 'word'"},
        {"~", BERTH_ERROR_SYNTAX, "1:1: expected a crate with fields such as 'label', got nothing"},
        {"{label: [x]}", BERTH_ERROR_SYNTAX, "1:9: label: expected a text, got a list of 1"},
        {"{label: {x: y}}", BERTH_ERROR_SYNTAX, "1:9: label: expected a text, got a mapping"},
        {"{label: \"a\\0b\"}", BERTH_ERROR_SYNTAX,
         "1:9: label: expected a text, got 'a?b' with a zero byte"},
        {"{label: x, pieces: []}", BERTH_ERROR_SYNTAX,
         "1:20: pieces: expected a whole number, got a list of 0"},
        {"{label: x, floor: {}}", BERTH_ERROR_SYNTAX,
         "1:19: floor: expected a whole number, got a mapping"},
        {"{label: x, weight: [1]}", BERTH_ERROR_SYNTAX,
         "1:20: weight: expected a size such as 8GiB, got a list of 1"},
        {"{label: x, colour: [red]}", BERTH_ERROR_SYNTAX,
         "1:20: colour: expected one of red, green, got a list of 1"},
        {"{label: x, owners: me}", BERTH_ERROR_SYNTAX, "1:20: owners: expected a list, got 'me'"},
        {"{label: x, owners: {a: b}}", BERTH_ERROR_SYNTAX,
         "1:20: owners: expected a list, got a mapping"},
        {"{label: x, owners: [a, [b]]}", BERTH_ERROR_SYNTAX,
         "1:24: owners: expected a text, got a list of 1"},
        {"{label: x, owners: [a, ~]}", BERTH_ERROR_SYNTAX,
         "1:24: owners: expected a text, got nothing"},
        {"{label: x, parts: {name: y}}", BERTH_ERROR_SYNTAX,
         "1:19: parts: expected a list, got a mapping"},
        {"{label: x, parts: [{name: y}, z]}", BERTH_ERROR_SYNTAX,
         "1:31: expected a part with fields such as 'name', got 'z'"},
        {"{label: x, sealed: [true]}", BERTH_ERROR_SYNTAX,
         "1:20: sealed: expected true or false, got a list of 1"},
        {"{label: x, spare: [{name: y}]}", BERTH_ERROR_SYNTAX,
         "1:19: expected a part with fields such as 'name', got a list of 1"},
        {"{label: x, spare: {}}", BERTH_ERROR_SYNTAX, "1:19: a part needs the field 'name'"},
        {"{label: x, parts: [null]}", BERTH_ERROR_SYNTAX,
         "1:20: expected a part with fields such as 'name', got nothing"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void wrong_values_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"{label: x, pieces: 1}", BERTH_ERROR_RANGE,
         "1:20: pieces: expected a whole number from 2 to 10, got 1"},
        {"{label: x, pieces: 11}", BERTH_ERROR_RANGE,
         "1:20: pieces: expected a whole number from 2 to 10, got 11"},
        {"{label: x, pieces: -3}", BERTH_ERROR_SYNTAX,
         "1:20: pieces: expected a whole number, got '-3'"},
        {"{label: x, pieces: 2.5}", BERTH_ERROR_SYNTAX,
         "1:20: pieces: expected a whole number, got '2.5'"},
        {"{label: x, pieces: many}", BERTH_ERROR_SYNTAX,
         "1:20: pieces: expected a whole number, got 'many'"},
        {"{label: x, pieces: \"5\"}", BERTH_ERROR_SYNTAX,
         "1:20: pieces: expected a whole number, got '5' in quotes (leave them out)"},
        {"{label: x, pieces: 05}", BERTH_ERROR_SYNTAX,
         "1:20: pieces: expected a whole number without leading zeros, got '05'"},
        {"{label: x, floor: 00}", BERTH_ERROR_SYNTAX,
         "1:19: floor: expected a whole number without leading zeros, got '00'"},
        {"{label: x, sealed: yes}", BERTH_ERROR_SYNTAX,
         "1:20: sealed: expected true or false, got 'yes'"},
        {"{label: x, sealed: tRUE}", BERTH_ERROR_SYNTAX,
         "1:20: sealed: expected true or false, got 'tRUE'"},
        {"{label: x, sealed: 'true'}", BERTH_ERROR_SYNTAX,
         "1:20: sealed: expected true or false, got 'true' in quotes (leave them out)"},
        {"{label: x, spare: {name: y, teeth: x}}", BERTH_ERROR_SYNTAX,
         "1:36: teeth: expected a whole number, got 'x'"},
        {"{label: x, floor: 100}", BERTH_ERROR_RANGE,
         "1:19: floor: expected a whole number from 0 to 99, got 100"},
        {"{label: x, floor: 4294967296}", BERTH_ERROR_RANGE,
         "1:19: floor: expected a whole number from 0 to 99, got 4294967296"},
        {"{label: x, weight: 5 apples}", BERTH_ERROR_SYNTAX,
         "1:20: weight: expected a size such as 8GiB or 512M, got '5 apples': unknown unit "
         "'apples'"},
        {"{label: x, weight: 8EiB}", BERTH_ERROR_RANGE,
         "1:20: weight: expected a size from 0 B to 7.99 EiB, got '8EiB'"},
        {"{label: x, volume: 1023}", BERTH_ERROR_RANGE,
         "1:20: volume: expected a size from 1 KiB to 4 KiB, got '1023'"},
        {"{label: x, volume: 5K}", BERTH_ERROR_RANGE,
         "1:20: volume: expected a size from 1 KiB to 4 KiB, got '5K'"},
        {"{label: x, colour: gren}", BERTH_ERROR_INVALID,
         "1:20: colour: expected one of red, green, got 'gren' (did you mean green?)"},
        {"{label: x, colour: mauve}", BERTH_ERROR_INVALID,
         "1:20: colour: expected one of red, green, got 'mauve'"},
        {"{label: x, mark: abcde}", BERTH_ERROR_RANGE,
         "1:18: mark: expected a text of 1 to 4 bytes, got 5"},
        {"{label: ''}", BERTH_ERROR_RANGE, "1:9: label: expected a text of 1 to 255 bytes, got 0"},
        {"{label: x, owners: [a, longest]}", BERTH_ERROR_RANGE,
         "1:24: owners: expected a text of 1 to 6 bytes, got 7"},
        {"{label: x, parts: [{name: y, teeth: x}]}", BERTH_ERROR_SYNTAX,
         "1:37: teeth: expected a whole number, got 'x'"},
    };

    (void)state;
    check_refusals(refusals, COUNT(refusals));
}

static void texts_may_be_long_up_to_a_limit(void **state)
{
    struct text text = {0};
    struct crate crate;
    struct refusal refusal;

    (void)state;
    text_append(&text, "label: ");
    text_append_repeated(&text, 'x', 255);
    crate = good_crate(text_string(&text));
    assert_int_equal(strlen(crate.label), 255);
    crate_finish(&crate);
    text_append(&text, "x");
    refusal = (struct refusal){text_string(&text), BERTH_ERROR_RANGE,
                               "1:8: label: expected a text of 1 to 255 bytes, got 256"};
    check_refusals(&refusal, 1);
    text_finish(&text);
}

static void a_record_checks_itself_last(void **state)
{
    static const struct refusal refusals[] = {
        {"{pieces: 2, parts: [{name: a}, {name: b}, {name: c}], label: x}", BERTH_ERROR_INVALID,
         "1:20: parts: more than pieces"},
        {"\n{colour: green, label: x}", BERTH_ERROR_INVALID, "2:1: mark: green crates have one"},
        {"{colour: green}", BERTH_ERROR_SYNTAX, "1:1: a crate needs the field 'label'"},
    };
    struct crate crate = good_crate("{pieces: 2, parts: [{name: a}, {name: b}], label: x}");

    (void)state;
    crate_finish(&crate);
    check_refusals(refusals, COUNT(refusals));
}

static int attempt(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct crate crate;
    int code = read_crate(context, &crate, &error);

    crate_finish(&crate);
    return code;
}

static void out_of_memory_is_reported_at_every_allocation(void **state)
{
    struct document document = parse_string("label: x\nmark: y\nowners: [a, b, c]\n"
                                            "parts: [{name: y}, {name: z, teeth: 3}]\n");

    (void)state;
    assert_true(failing_allocator_try_all(attempt, &document) >= 12);
    document_finish(&document);
}

/* The list of names in a message needs memory too. */
static void out_of_memory_is_reported_for_messages(void **state)
{
    static const char *const texts[] = {"{label: x, zzz: 5}", "{label: x, colour: mauve}"};

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct document document = parse_string(texts[i]);
        int code = BERTH_ERROR_MEMORY;

        for (unsigned long n = 1; code == BERTH_ERROR_MEMORY; n++) {
            failing_allocator_start(n);
            code = attempt(&document);
            assert_int_equal(failing_allocator_stop(), code == BERTH_ERROR_MEMORY);
            assert_true(n < 100);
        }
        document_finish(&document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(what_is_left_out_stays_as_it_was),
        cmocka_unit_test(texts_that_look_like_something_else_are_texts),
        cmocka_unit_test(booleans_are_those_of_yaml),
        cmocka_unit_test(unknown_fields_are_refused),
        cmocka_unit_test(missing_and_doubled_fields_are_refused),
        cmocka_unit_test(wrong_kinds_are_refused),
        cmocka_unit_test(wrong_values_are_refused),
        cmocka_unit_test(texts_may_be_long_up_to_a_limit),
        cmocka_unit_test(a_record_checks_itself_last),
        cmocka_unit_test(out_of_memory_is_reported_at_every_allocation),
        cmocka_unit_test(out_of_memory_is_reported_for_messages),
    };

    return cmocka_run_group_tests_name("field", tests, NULL, NULL);
}
