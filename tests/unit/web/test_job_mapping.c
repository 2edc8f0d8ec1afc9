/* SPDX-License-Identifier: Apache-2.0
 *
 * The files that map GPUs to leases.
 */
#include "support/unit.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"
#include "support/temporary_directory.h"
#include "support/views/pool_views.h"
#include "web/job_mapping.h"

static void index_view(struct pool_view *view)
{
    struct berth_error error = BERTH_ERROR_INIT;

    vector_finish(&view->uses);
    assert_int_equal(pool_view_index(view, &error), 0);
}

static void check_file(const char *name, const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = {0};

    if (wanted == NULL) {
        assert_int_equal(access(name, F_OK), -1);
        return;
    }
    assert_int_equal(file_read(name, 4096, &content, &error), 0);
    assert_string_equal(text_string(&content), wanted);
    text_finish(&content);
}

static size_t count_files(void)
{
    DIR *directory = opendir(".");
    const struct dirent *entry;
    size_t count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

static void update(struct job_mapping *mapping, const struct pool_view *view)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(job_mapping_update(mapping, view, &error), 0);
}

static void leases_come_and_go(void **state)
{
    struct pool_view view = view_of(4);
    struct job_mapping mapping = {0};
    struct berth_error error = BERTH_ERROR_INIT;
    struct stat before;
    struct stat after;

    (void)state;
    view.snapshot.slots.items[2].device->id.vendor = VENDOR_AMD;
    view.snapshot.slots.items[3].device->id = (struct device_id){VENDOR_NVIDIA, 0, 5};
    fclose(fopen("1", "w"));
    assert_int_equal(job_mapping_open(&mapping, ".", &error), 0);
    update(&mapping, &view);
    assert_int_equal(count_files(), 0); /* old files of our devices are removed, too */
    view_lease(&view, 12, 0, 2);
    view_lease(&view, 112, 1, 2);
    view_lease(&view, 13, 2, 3);
    view_lease(&view, 14, 3, 4);
    view_lease(&view, 12, 3, 4); /* lease 12 has GPU 0 twice */
    index_view(&view);
    update(&mapping, &view);
    check_file("0", "12\n14\n");
    check_file("1", "12\n112\n");
    assert_int_equal(count_files(), 2);
    assert_int_equal(stat("1", &before), 0);
    update(&mapping, &view);
    assert_int_equal(stat("1", &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* an unchanged file is not written again */
    view.snapshot.leases.count = 1;
    index_view(&view);
    update(&mapping, &view);
    check_file("0", "12\n");
    check_file("1", "12\n");
    job_mapping_close(&mapping);
    assert_int_equal(count_files(), 0);
    view.snapshot.leases.count = 5;
    pool_view_finish(&view);
}

static void places_that_will_not_do(void **state)
{
    struct job_mapping mapping = {0};
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    assert_int_equal(job_mapping_open(&mapping, "none", &error), BERTH_ERROR_INVALID);
    assert_string_equal(error.message, "cannot write into none: No such file or directory");
    fclose(fopen("file", "w"));
    assert_int_equal(job_mapping_open(&mapping, "file", &error), BERTH_ERROR_INVALID);
    assert_false(mapping.is_open);
    job_mapping_close(&mapping);
}

/* A directory has the name of a file: the other files are written, and the next update retries. */
static void what_fails_is_tried_again(void **state)
{
    struct pool_view view = view_of(2);
    struct job_mapping mapping = {0};
    struct berth_error error = BERTH_ERROR_INIT;

    (void)state;
    view_lease(&view, 12, 0, 2);
    index_view(&view);
    assert_int_equal(mkdir("0", 0700), 0);
    assert_int_equal(job_mapping_open(&mapping, ".", &error), 0);
    assert_true(job_mapping_update(&mapping, &view, &error) < 0);
    assert_non_null(strstr(error.message, "--job-mapping: cannot write 0: "));
    check_file("1", "12\n");
    check_file(".0.new", NULL);
    assert_int_equal(rmdir("0"), 0);
    update(&mapping, &view);
    check_file("0", "12\n");
    job_mapping_close(&mapping);
    pool_view_finish(&view);
}

static void nowhere(void **state)
{
    struct pool_view view = view_of(1);
    struct job_mapping mapping = {0};

    (void)state;
    update(&mapping, &view);
    job_mapping_close(&mapping);
    pool_view_finish(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(leases_come_and_go, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(places_that_will_not_do, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test_setup_teardown(what_fails_is_tried_again, temporary_directory_enter,
                                        temporary_directory_leave),
        cmocka_unit_test(nowhere),
    };

    return cmocka_run_group_tests_name("web job mapping", tests, NULL, NULL);
}
