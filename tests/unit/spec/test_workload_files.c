/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the files in tests/data/spec. Each names the expected result: for a valid file its request
 * in words, for an invalid file the message without the file's name. Together the files have every
 * field, every contradiction and every note.
 */
#include "support/unit.h"

#include "spec/workload.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "support/failing_allocator.h"
#include "support/source_root.h"
#include "support/spec/wanted_files.h"
#include "support/spec/workload_text.h"
#include "write_spec.h"

#define GOOD "tests/data/spec/good"
#define BAD  "tests/data/spec/bad"

/* ---- Each file ---- */

static void check_good(const char *path)
{
    const char *name = enter_directory(path);
    struct berth_error error = BERTH_ERROR_INIT;
    char *wanted = read_wanted(name);
    struct request_options options;
    struct request request;
    struct text found = {0};

    if (workload_read(name, &options, &error) < 0 ||
        request_options_resolve(&options, &request, &error) < 0)
        fail_msg("%s: %s", path, error.message);
    assert_string_equal(error.message, "");
    write_workload_words(&options, &request, &found);
    if (strcmp(text_string(&found), wanted) != 0)
        fail_msg("%s: expected \"%s\", got \"%s\"", path, wanted, text_string(&found));
    request_options_finish(&options);
    text_finish(&found);
    free(wanted);
}

static void check_bad(const char *path)
{
    const char *name = enter_directory(path);
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options = {.master_port = 4711};
    int code = workload_read(name, &options, &error);

    if (code == 0)
        fail_msg("%s: expected an error, got none", path);
    assert_int_equal(error.code, code);
    assert_int_equal(options.master_port, 4711);
    check_wanted_message(path, name, error.message);
}

static void good_files_are_read(void **state)
{
    (void)state;
    assert_true(for_each_source_file(GOOD, ".yaml", check_good) >= 35);
    assert_true(for_each_source_file(GOOD, ".json", check_good) >= 5);
}

static void bad_files_are_refused_with_the_right_words(void **state)
{
    (void)state;
    assert_true(for_each_source_file(BAD, ".yaml", check_bad) >= 100);
    assert_true(for_each_source_file(BAD, ".json", check_bad) >= 5);
}

/* ---- All files together ---- */

/* The expected results of all files, and the fields of all valid files: " gpu.count ". */
static struct text all_wanted;
static struct text all_fields;

static void collect_wanted(const char *path)
{
    char *wanted = read_wanted(path);

    text_append_format(&all_wanted, "%s\n", wanted);
    free(wanted);
}

/* Appends the names of all keys of the mapping that have a value. */
static void collect_keys(const struct document_node *node, const char *above)
{
    for (size_t i = 0; node->kind == NODE_MAPPING && i < node->count; i += 2) {
        struct text path = {0};

        text_append_format(&path, "%s%s", above, node->items[i]->text);
        if (!document_node_is_null(node->items[i + 1]))
            text_append_format(&all_fields, " %s ", text_string(&path));
        text_append_char(&path, '.');
        collect_keys(node->items[i + 1], text_string(&path));
        text_finish(&path);
    }
}

static void collect_fields(const char *path)
{
    struct document document;

    assert_int_equal(document_read(&document, path, NULL), 0);
    collect_keys(document.root, "");
    document_finish(&document);
}

static void collect(void (*visit)(const char *path), const char *directory)
{
    for_each_source_file(directory, ".yaml", visit);
    for_each_source_file(directory, ".json", visit);
}

/* Checks that every field of the record is in a valid file and, unless it is a record or a text, in
 * the message of an invalid file. */
static void check_record(const struct record *record, const char *above)
{
    for (size_t i = 0; i < record->field_count; i++) {
        const struct field *field = &record->fields[i];
        struct text path = {0};

        text_append_format(&path, " %s%s ", above, field->name);
        if (strstr(text_string(&all_fields), text_string(&path)) == NULL)
            fail_msg("no good file has%s", text_string(&path));
        text_clear(&path);
        text_append_format(&path, ": %s: ", field->name);
        if (field->record == NULL && field->type != &field_text &&
            strstr(text_string(&all_wanted), text_string(&path)) == NULL)
            fail_msg("no bad file has an error in %s", field->name);
        text_clear(&path);
        text_append_format(&path, "%s%s.", above, field->name);
        if (field->record != NULL && strcmp(above, "resources.") != 0)
            check_record(field->record, text_string(&path));
        text_finish(&path);
    }
}

static void every_field_is_there(void **state)
{
    (void)state;
    collect(collect_fields, GOOD);
    collect(collect_wanted, BAD);
    check_record(&workload_record, "");
    text_finish(&all_fields);
    text_finish(&all_wanted);
}

static void every_contradiction_is_there(void **state)
{
    (void)state;
    collect(collect_wanted, BAD);
    for (const struct contradiction *row = spec_rules; row->sentence != NULL; row++) {
        if (strstr(text_string(&all_wanted), row->sentence) == NULL)
            fail_msg("no bad file has: %s", row->sentence);
    }
    text_finish(&all_wanted);
}

static void every_note_is_there(void **state)
{
    (void)state;
    collect(collect_wanted, GOOD);
    for (const struct workload_note *note = workload_notes; note->sentence != NULL; note++) {
        if (strstr(text_string(&all_wanted), note->sentence) == NULL)
            fail_msg("no good file has: %s", note->sentence);
    }
    text_finish(&all_wanted);
}

/* Checks the texts that messages and docs/SPEC.md need. */
static void check_words(const struct record *record)
{
    assert_non_null(record->what);
    for (size_t i = 0; i < record->field_count; i++) {
        const struct field *field = &record->fields[i];

        assert_non_null(field->help);
        assert_non_null(field->example);
        assert_int_equal(field->help[strlen(field->help) - 1], '.');
        if (field->record != NULL)
            check_words(field->record);
    }
}

static void every_field_has_its_words(void **state)
{
    (void)state;
    check_words(&workload_record);
}

/* ---- Memory ---- */

static int attempt(void *context)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options = {.master_port = 4711};
    int code = workload_read(context, &options, &error);

    if (code == 0) {
        request_options_finish(&options);
    } else {
        assert_int_equal(options.master_port, 4711);
        assert_int_equal(error.code, code);
    }
    return code;
}

static void try_good(const char *path)
{
    assert_true(failing_allocator_try_all(attempt, (void *)path) > 0);
}

static void try_bad(const char *path)
{
    failing_allocator_try_failing(attempt, (void *)path);
}

static void memory_runs_out_at_every_step(void **state)
{
    (void)state;
    collect(try_good, GOOD);
    collect(try_bad, BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_files_are_read),
        cmocka_unit_test(bad_files_are_refused_with_the_right_words),
        cmocka_unit_test(every_field_is_there),
        cmocka_unit_test(every_contradiction_is_there),
        cmocka_unit_test(every_note_is_there),
        cmocka_unit_test(every_field_has_its_words),
        cmocka_unit_test(memory_runs_out_at_every_step),
    };

    return cmocka_run_group_tests_name("workload_files", tests, NULL, NULL);
}
