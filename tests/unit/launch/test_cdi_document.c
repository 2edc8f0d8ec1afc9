/* SPDX-License-Identifier: Apache-2.0
 *
 * CDI documents of devices whose files exist on every machine.
 */
#include "support/unit.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/cdi_document.h"
#include "support/assert_error.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"

static void give_node(struct machine *machine, const char *id, const char *node)
{
    assert_int_equal(string_list_append(&machine_device(machine, id)->nodes, node), 0);
}

/* Two devices that share a file, one without files, and one that cannot be leased. */
static struct machine make_machine(void)
{
    struct machine machine = {0};

    machine_add_ids(&machine, "nvidia0,nvidia1,amd0,nvidia2,nvidia2.1");
    give_node(&machine, "nvidia0", "/dev/null");
    give_node(&machine, "nvidia0", "/dev/zero");
    give_node(&machine, "nvidia0", "/dev/null");
    give_node(&machine, "nvidia1", "/dev/full");
    give_node(&machine, "nvidia1", "/dev/zero");
    give_node(&machine, "nvidia2", "/dev/random");
    machine_device(&machine, "nvidia2")->partitioned = true;
    give_node(&machine, "nvidia2.1", "/dev/full");
    return machine;
}

#define NODE(path, minor)                                                                      \
    "          {\n            \"path\": \"" path "\",\n            \"type\": \"c\",\n"         \
    "            \"major\": 1,\n            \"minor\": " minor ",\n            \"fileMode\": " \
    "438,\n            \"uid\": 0,\n            \"gid\": 0,\n            \"permissions\": "    \
    "\"rw\"\n          }"
#define ENTRY(name, nodes)                                                        \
    "    {\n      \"name\": \"" name "\",\n      \"containerEdits\": {\n        " \
    "\"deviceNodes\": [\n" nodes "\n        ]\n      }\n    }"

static const char wanted[] =
    "{\n  \"cdiVersion\": \"0.5.0\",\n  \"kind\": \"berth/gpu\",\n  \"devices\": [\n" ENTRY(
        "nvidia0",
        NODE("/dev/null", "3") ",\n" NODE(
            "/dev/zero",
            "5")) ",\n" ENTRY("nvidia1",
                              NODE("/dev/full", "7") ",\n" NODE(
                                  "/dev/zero",
                                  "5")) ",\n" ENTRY("nvidia2.1",
                                                    NODE("/dev/full",
                                                         "7")) ",\n" ENTRY("all",
                                                                           NODE("/dev/null", "3") ",\n" NODE(
                                                                               "/dev/zero",
                                                                               "5") ",\n" NODE("/de"
                                                                                               "v/"
                                                                                               "ful"
                                                                                               "l",
                                                                                               "7")) "\n  ],\n  \"containerEdits\": {\n    \"env\": [\n      "
                                                                                                     "\"NVIDIA_VISIBLE_DEVICES=void\"\n    ]\n  }\n}\n";

/* Skips the test if these device files are missing or unusual, as in some containers. */
static void need_usual_files(void)
{
    static const char *const paths[] = {"/dev/null", "/dev/zero", "/dev/full"};
    struct stat status;

    for (size_t i = 0; i < 3; i++) {
        if (lstat(paths[i], &status) == 0 && S_ISCHR(status.st_mode) &&
            (status.st_mode & 07777) == 0666 && status.st_uid == 0 && status.st_gid == 0)
            continue;
        print_message("skip: %s has an unusual mode or owner\n", paths[i]);
        skip();
    }
}

static void the_document(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine = make_machine();
    struct string_list notes = {0};
    struct text out = {0};

    (void)state;
    need_usual_files();
    assert_int_equal(cdi_document_write(&machine.devices, "", &out, &notes, &error), 0);
    assert_string_equal(text_string(&out), wanted);
    assert_int_equal(notes.count, 1);
    assert_string_equal(notes.items[0], "amd0: has no device file; left out");
    text_finish(&out);
    string_list_finish(&notes);
    machine_finish(&machine);
}

static void check_notes(const struct string_list *notes, const char *const *sentences)
{
    for (size_t i = 0; i < notes->count; i++) {
        assert_non_null(sentences[i]);
        assert_string_equal(notes->items[i], sentences[i]);
    }
    assert_null(sentences[notes->count]);
}

static void what_is_no_device_file_is_left_out(void **state)
{
    static const char *const sentences[] = {
        "./missing: No such file or directory; left out",
        "./file: expected a character device, got a regular file; left out",
        "./directory: expected a character device, got a directory; left out",
        "./link: expected a character device, got a symbolic link; left out",
        "./pipe: expected a character device, got something else; left out",
        "relative?: expected an absolute path; left out",
        "nvidia0: has no device file; left out",
        NULL,
    };
    static const char *const nodes[] = {"/missing", "/file", "/directory",   "/link",
                                        "/pipe",    "/file", "relative\033", NULL};
    struct berth_error error = BERTH_ERROR_INIT;
    struct string_list notes = {0};
    struct machine machine = {0};
    struct text out = {0};
    FILE *file = fopen("file", "w");

    (void)state;
    assert_non_null(file);
    fclose(file);
    assert_int_equal(mkdir("directory", 0700), 0);
    assert_int_equal(symlink("/dev/null", "link"), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    machine_add_ids(&machine, "nvidia0");
    for (size_t i = 0; nodes[i] != NULL; i++)
        give_node(&machine, "nvidia0", nodes[i]);
    assert_fails(cdi_document_write(&machine.devices, ".", &out, &notes, &error),
                 BERTH_ERROR_NO_DEVICE, &error,
                 "cannot write a CDI file: no device has a device file");
    check_notes(&notes, sentences);
    assert_int_equal(out.length, 0);
    string_list_finish(&notes);
    machine_finish(&machine);
}

static void no_device(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct string_list notes = {0};
    struct machine machine = {0};
    struct text out = {0};

    (void)state;
    assert_fails(cdi_document_write(&machine.devices, "", &out, &notes, &error),
                 BERTH_ERROR_NO_DEVICE, &error, "cannot write a CDI file: there is no device");
    machine_add_ids(&machine, "nvidia0");
    machine.devices.items[0].partitioned = true;
    assert_fails(cdi_document_write(&machine.devices, "", &out, &notes, &error),
                 BERTH_ERROR_NO_DEVICE, &error, "cannot write a CDI file: there is no device");
    assert_int_equal(notes.count, 0);
    machine_finish(&machine);
}

static void a_recorded_machine(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct string_list notes = {0};
    struct machine machine = {0};
    struct text out = {0};

    (void)state;
    machine_add_ids(&machine, "nvidia0");
    give_node(&machine, "nvidia0", "/null");
    assert_int_equal(cdi_document_write(&machine.devices, "/dev", &out, &notes, &error), 0);
    assert_non_null(strstr(text_string(&out),
                           "\"path\": \"/null\",\n            \"hostPath\": \"/dev/null\",\n"));
    assert_int_equal(notes.count, 0);
    text_finish(&out);
    machine_finish(&machine);
}

static int attempt(void *context)
{
    const struct machine *machine = context;
    struct string_list notes = {0};
    struct text out = {0};
    int code = cdi_document_write(&machine->devices, "/", &out, &notes, NULL);

    text_finish(&out);
    string_list_finish(&notes);
    return code;
}

static void no_memory(void **state)
{
    struct machine machine = make_machine();

    (void)state;
    give_node(&machine, "amd0", "/missing");
    assert_true(failing_allocator_try_all(attempt, &machine) > 10);
    machine_finish(&machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document),
        cmocka_unit_test_setup_teardown(what_is_no_device_file_is_left_out,
                                        temporary_directory_enter, temporary_directory_leave),
        cmocka_unit_test(no_device),
        cmocka_unit_test(a_recorded_machine),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests_name("cdi_write", tests, NULL, NULL);
}
