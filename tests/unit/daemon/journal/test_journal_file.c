/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "daemon/journal/journal_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "support/assert_error.h"
#include "support/temporary_directory.h"

static const char path[] = "pool.journal";

enum { READ_MAX = 64 * 1024 * 1024, RECORD = 100, LIMIT = 256 * 1024 };

static struct text content_of(const char *string)
{
    struct text content = {0};

    text_append(&content, string);
    return content;
}

/* Checks that the file begins with the text, and that only zeros follow. */
static void check_file(const struct text *wanted)
{
    struct text found = {0};

    assert_int_equal(file_read(path, READ_MAX, &found, NULL), 0);
    assert_true(found.length >= wanted->length);
    assert_memory_equal(found.bytes, text_string(wanted), wanted->length);
    for (size_t i = wanted->length; i < found.length; i++)
        assert_int_equal(found.bytes[i], 0);
    text_finish(&found);
}

static void what_is_appended_is_in_the_file_at_once(void **state)
{
    struct journal_file file = JOURNAL_FILE_INIT;
    struct text content = content_of("first");

    (void)state;
    assert_int_equal(journal_file_make(&file, path, &content, NULL), 0);
    check_file(&content);
    for (int i = 0; i < 5000; i++) {
        char record[RECORD];

        memset(record, 'a' + i % 26, sizeof(record));
        assert_int_equal(journal_file_reserve(&file, sizeof(record), NULL), 0);
        journal_file_append(&file, record, sizeof(record));
        text_append_bytes(&content, record, sizeof(record));
    }
    assert_false(journal_file_is_behind(&file));
    check_file(&content);
    journal_file_finish(&file);
    check_file(&content);
    text_finish(&content);
}

static void a_new_one_takes_the_place_of_the_old(void **state)
{
    struct journal_file file = JOURNAL_FILE_INIT;
    struct text one = content_of("one");
    struct text other = content_of("other");

    (void)state;
    assert_int_equal(journal_file_make(&file, path, &one, NULL), 0);
    journal_file_append(&file, "more", 4);
    assert_int_equal(journal_file_make(&file, path, &other, NULL), 0);
    check_file(&other);
    journal_file_append(&file, " record", 7);
    text_append(&other, " record");
    check_file(&other);
    assert_int_equal(access("pool.journal.new", F_OK), -1);
    journal_file_finish(&file);
    text_finish(&one);
    text_finish(&other);
}

static void what_cannot_be_made_leaves_the_old(void **state)
{
    struct journal_file file = JOURNAL_FILE_INIT;
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = content_of("kept");

    (void)state;
    assert_int_equal(journal_file_make(&file, path, &content, NULL), 0);
    assert_int_equal(journal_file_make(&file, "nowhere/pool.journal", &content, &error),
                     BERTH_ERROR_NOT_FOUND);
    assert_string_equal(error.message,
                        "cannot write nowhere/pool.journal: No such file or directory");
    journal_file_append(&file, "!", 1);
    text_append(&content, "!");
    check_file(&content);
    journal_file_finish(&file);
    text_finish(&content);
}

/* A limit on the size of files has the same effect as a full disk. */
static void set_limit(rlim_t max)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_loses_nothing(void **state)
{
    struct journal_file file = JOURNAL_FILE_INIT;
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = content_of("start");
    char record[RECORD];
    size_t refused_at = 0;
    struct rlimit before;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    memset(record, 'r', sizeof(record));
    assert_int_equal(journal_file_make(&file, path, &content, NULL), 0);
    set_limit(LIMIT);
    while (journal_file_reserve(&file, sizeof(record), &error) == 0) {
        journal_file_append(&file, record, sizeof(record));
        text_append_bytes(&content, record, sizeof(record));
    }
    refused_at = content.length;
    assert_string_equal(error.message, "cannot write the pool's journal: File too large");
    assert_false(journal_file_is_behind(&file));
    /* Records that must be written are accepted for a while, then wait in order. */
    while (!journal_file_is_behind(&file)) {
        journal_file_append(&file, record, sizeof(record));
        text_append_bytes(&content, record, sizeof(record));
    }
    assert_true(content.length - refused_at > 8 * 1024);
    journal_file_append(&file, "last", 4);
    text_append(&content, "last");
    set_limit(before.rlim_cur);
    assert_false(journal_file_is_behind(&file));
    check_file(&content);
    journal_file_finish(&file);
    text_finish(&content);
}

static void it_is_long_when_it_is_worth_making_anew(void **state)
{
    struct journal_file file = JOURNAL_FILE_INIT;
    struct text content = content_of("short");
    char record[4096] = {1};

    (void)state;
    assert_int_equal(journal_file_make(&file, path, &content, NULL), 0);
    assert_false(journal_file_is_long(&file));
    for (int i = 0; i < 300; i++)
        journal_file_append(&file, record, sizeof(record));
    assert_true(journal_file_is_long(&file));
    assert_int_equal(journal_file_make(&file, path, &content, NULL), 0);
    assert_false(journal_file_is_long(&file));
    journal_file_finish(&file);
    text_finish(&content);
}

/* A damaged file is kept under another name, without space for a copy. */
static void a_damaged_file_is_kept(void **state)
{
    struct stat before;
    struct stat after;
    char *kept;
    int descriptor;

    (void)state;
    assert_null(journal_file_keep_damaged(path));
    descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(descriptor >= 0);
    close(descriptor);
    for (int i = 0; i < 2; i++) {
        kept = journal_file_keep_damaged(path);
        assert_string_equal(kept, "pool.journal.damaged");
        assert_int_equal(stat(path, &before), 0);
        assert_int_equal(stat(kept, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        free(kept);
    }
    assert_int_equal(unlink("pool.journal.damaged"), 0);
    assert_int_equal(mkdir("pool.journal.damaged", 0700), 0);
    assert_null(journal_file_keep_damaged(path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_appended_is_in_the_file_at_once,
                                        temporary_directory_enter, temporary_directory_leave),
        cmocka_unit_test_setup_teardown(a_new_one_takes_the_place_of_the_old,
                                        temporary_directory_enter, temporary_directory_leave),
        cmocka_unit_test_setup_teardown(what_cannot_be_made_leaves_the_old,
                                        temporary_directory_enter, temporary_directory_leave),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_kept, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(a_full_disk_loses_nothing, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(it_is_long_when_it_is_worth_making_anew,
                                        temporary_directory_enter, temporary_directory_leave),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
