/* SPDX-License-Identifier: Apache-2.0
 *
 * CDI files in temporary directories: the vendors' files, berth's own, and files of other kinds.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count.h"
#include "base/system/file.h"
#include "cli/cdi_files.h"
#include "cli/devices/cdi_arguments.h"
#include "support/assert_error.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"
#include "support/views/captured_output.h"

/* Setup: unsets the variables that matter. */
static int enter(void **state)
{
    static const char *const names[] = {
        "BERTH_CDI_DIRECTORIES",
        "BERTH_SYSROOT",
        "BERTH_DEVICES",
        "BERTH_CDI_DEVICES",
        "BERTH_LEASE",
        "BERTH_SOCKET",
        "BERTH_DEVICE_NODES",
        "BERTH_CPUS",
        "BERTH_REPLICA",
        "RANK",
        "WORLD_SIZE",
        "MASTER_ADDR",
        "CUDA_MPS_PIPE_DIRECTORY",
    };

    for (size_t i = 0; i < COUNT(names); i++)
        unsetenv(names[i]);
    return temporary_directory_enter(state);
}

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Writes a file with one entry of this name and device file. */
static void offer(const char *path, const char *kind, const char *name, const char *node)
{
    struct text text = {0};

    text_append_format(&text,
                       "cdiVersion: 0.5.0\nkind: %s\ndevices:\n- name: '%s'\n  containerEdits:\n"
                       "    deviceNodes: [{path: %s}]\n",
                       kind, name, node);
    write_file(path, text_string(&text));
    text_finish(&text);
}

/* Reads the files and describes the entries: their names, with a mark on conflicts. */
static void check_read(const char *directories, const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct cdi_registry registry = {0};
    const struct cdi_entry *entry;
    struct text found = {0};

    setenv("BERTH_CDI_DIRECTORIES", directories, 1);
    assert_int_equal(cdi_files_read(false, &registry, &error), 0);
    vector_for_each (entry, &registry) {
        text_append_format(&found, "%s%s%s", found.length == 0 ? "" : " ", entry->name,
                           entry->ambiguous ? "!" : "");
        if (entry->nodes.count > 0)
            text_append_format(&found, "@%s", entry->nodes.items[0]);
    }
    assert_string_equal(text_string(&found), wanted);
    text_finish(&found);
    cdi_registry_finish(&registry);
}

static void make_directories(void)
{
    assert_int_equal(mkdir("one", 0700), 0);
    assert_int_equal(mkdir("two", 0700), 0);
}

static void files_in_order(void **state)
{
    (void)state;
    make_directories();
    offer("one/b.yaml", "b.com/gpu", "0", "/dev/b");
    offer("one/a.json", "a.com/gpu", "0", "/dev/a");
    offer("one/c.yml", "c.com/gpu", "0", "/dev/c");
    offer("one/d.yaml.bak", "d.com/gpu", "0", "/dev/d");
    offer("two/a.yaml", "b.com/gpu", "0", "/dev/later");
    offer("two/own.yaml", "berth/gpu", "nvidia0", "/dev/own");
    check_read("one", "a.com/gpu=0@/dev/a b.com/gpu=0@/dev/b");
    check_read("one:two", "a.com/gpu=0@/dev/a b.com/gpu=0@/dev/later");
    check_read("two:one", "b.com/gpu=0@/dev/b a.com/gpu=0@/dev/a");
    check_read(":missing::one/:", "a.com/gpu=0@/dev/a b.com/gpu=0@/dev/b");
    check_read("missing", "");
    check_read("one/a.json", "");
}

static void twice_in_a_directory(void **state)
{
    (void)state;
    make_directories();
    offer("one/a.yaml", "a.com/gpu", "0", "/dev/a");
    offer("one/b.yaml", "a.com/gpu", "0", "/dev/b");
    offer("two/a.yaml", "a.com/gpu", "0", "/dev/c");
    check_read("one", "a.com/gpu=0!@/dev/a");
    check_read("one:two", "a.com/gpu=0!@/dev/c");
    check_read("two", "a.com/gpu=0@/dev/c");
}

static void the_usual_directories(void **state)
{
    struct cdi_registry registry = {0};

    setenv("BERTH_SYSROOT", *state, 1);
    assert_int_equal(cdi_files_read(true, &registry, NULL), 0);
    assert_int_equal(registry.count, 0);
    assert_int_equal(mkdir("etc", 0700) | mkdir("etc/cdi", 0700), 0);
    assert_int_equal(mkdir("var", 0700) | mkdir("var/run", 0700) | mkdir("var/run/cdi", 0700), 0);
    offer("etc/cdi/a.yaml", "a.com/gpu", "0", "/dev/a");
    offer("var/run/cdi/a.yaml", "a.com/gpu", "0", "/dev/later");
    assert_int_equal(cdi_files_read(true, &registry, NULL), 0);
    assert_int_equal(registry.count, 1);
    assert_string_equal(registry.items[0].nodes.items[0], "/dev/later");
    cdi_registry_finish(&registry);
}

/* Reads the files and checks that standard error is `wanted`. */
static void check_told(bool verbose, const char *wanted)
{
    struct cdi_registry registry = {0};
    struct text told = {0};
    int kept = captured_redirect(STDERR_FILENO, CAPTURED_ERRORS);
    int code = cdi_files_read(verbose, &registry, NULL);

    fflush(stderr);
    captured_restore(STDERR_FILENO, kept);
    assert_int_equal(code, 0);
    assert_int_equal(registry.count, 1);
    assert_int_equal(file_read(CAPTURED_ERRORS, 4096, &told, NULL), 0);
    assert_string_equal(text_string(&told), wanted);
    text_finish(&told);
    cdi_registry_finish(&registry);
}

static void what_is_no_file_of_theirs_is_skipped(void **state)
{
    struct text large = {0};

    (void)state;
    make_directories();
    offer("one/good.yaml", "a.com/gpu", "0", "/dev/a");
    write_file("one/broken.yaml", "cdiVersion: [");
    write_file("one/empty.json", "");
    text_append_repeated(&large, ' ', CDI_FILE_SIZE_MAX + 1);
    write_file("one/large.yaml", text_string(&large));
    text_finish(&large);
    /* Opening a pipe to read it would block. */
    assert_int_equal(mkfifo("one/pipe.yaml", 0600), 0);
    assert_int_equal(mkdir("one/directory.yaml", 0700), 0);
    assert_int_equal(symlink("nowhere", "one/link.yaml"), 0);
    assert_int_equal(symlink("good.yaml", "one/link.json.bak"), 0);
    offer("one/own.json", "berth/gpu", "nvidia0", "/dev/own");
    setenv("BERTH_CDI_DIRECTORIES", "one", 1);
    check_told(false, "");
    check_told(
        true,
        "berth: skipping a CDI file: one/broken.yaml:2:1: expected YAML or JSON: did not find "
        "expected node content\n"
        "berth: skipping a CDI file: one/directory.yaml: expected a regular file, got another "
        "kind\n"
        "berth: skipping a CDI file: one/empty.json:1:1: expected a CDI file with 'cdiVersion', "
        "'kind' and 'devices', got nothing\n"
        "berth: skipping a CDI file: cannot read one/large.yaml: larger than 4 MiB\n"
        "berth: skipping a CDI file: one/pipe.yaml: expected a regular file, got another "
        "kind\n");
}

static void too_many_entries(void **state)
{
    struct text text = {0};

    (void)state;
    make_directories();
    text_append(&text, "cdiVersion: 0.5.0\nkind: a.com/gpu\ndevices:\n");
    for (int i = 0; i < CDI_ENTRIES_MAX; i++)
        text_append_format(&text, "- {name: %d, containerEdits: {env: [A=b]}}\n", i);
    offer("one/a.yaml", "b.com/gpu", "0", "/dev/b");
    write_file("two/a.yaml", text_string(&text));
    text_finish(&text);
    setenv("BERTH_CDI_DIRECTORIES", "one:two", 1);
    {
        struct cdi_registry registry = {0};

        assert_int_equal(cdi_files_read(false, &registry, NULL), 0);
        assert_int_equal(registry.count, CDI_ENTRIES_MAX);
        cdi_registry_finish(&registry);
    }
}

static void check_content(const char *path, const char *wanted)
{
    struct text content = {0};
    struct stat status;

    assert_int_equal(file_read(path, 4096, &content, NULL), 0);
    assert_string_equal(text_string(&content), wanted);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0644);
    text_finish(&content);
}

static void writing(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text document = {0};

    (void)state;
    umask(077);
    text_append(&document, "first\n");
    assert_int_equal(cdi_files_write("made", &document, &error), 0);
    check_content("made/" CDI_FILE_NAME, "first\n");
    text_append(&document, "second\n");
    assert_int_equal(cdi_files_write("made/", &document, &error), 0);
    check_content("made/" CDI_FILE_NAME, "first\nsecond\n");
    assert_int_equal(unlink("made/" CDI_FILE_NAME), 0);
    assert_int_equal(rmdir("made"), 0); /* nothing else was in it */
    text_finish(&document);
    umask(022);
}

static void writing_fails(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text document = {0};

    (void)state;
    text_append(&document, "text\n");
    assert_fails(cdi_files_write("no/such", &document, &error), BERTH_ERROR_NOT_FOUND, &error,
                 "cannot write into no/such: No such file or directory");
    write_file("file", "");
    assert_fails(cdi_files_write("file", &document, &error), BERTH_ERROR_NOT_FOUND, &error,
                 "cannot write into file: Not a directory");
    /* A directory has the name of the file: the draft is removed. */
    assert_int_equal(mkdir("taken", 0700) | mkdir("taken/" CDI_FILE_NAME, 0700), 0);
    assert_fails(cdi_files_write("taken", &document, &error), BERTH_ERROR_IO, &error,
                 "cannot write into taken: Is a directory");
    assert_int_equal(rmdir("taken/" CDI_FILE_NAME) | rmdir("taken"), 0);
    document.failed = true;
    assert_int_equal(cdi_files_write("made", &document, &error), BERTH_ERROR_MEMORY);
    assert_int_equal(access("made", F_OK), -1);
    text_finish(&document);
}

static void check_arguments(enum cdi_arguments how, const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};

    assert_int_equal(cdi_arguments_write(how, &out, &error), 0);
    assert_string_equal(text_string(&out), wanted);
    text_finish(&out);
}

static void check_no_arguments(enum cdi_arguments how, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text out = {0};

    assert_fails(cdi_arguments_write(how, &out, &error), BERTH_ERROR_INVALID, &error, message);
    text_finish(&out);
}

static void arguments(void **state)
{
    (void)state;
    check_no_arguments(
        CDI_ARGUMENTS_CDI,
        "not inside a lease (no BERTH_DEVICES); use it as in: berth run -- sh -c 'exec podman "
        "run $(berth cdi --arguments cdi) ...'");
    setenv("BERTH_LEASE", "7", 1);
    setenv("BERTH_DEVICES", "nvidia0,nvidia1", 1);
    setenv("BERTH_CDI_DEVICES", "nvidia.com/gpu=0,berth/gpu=nvidia1", 1);
    check_no_arguments(CDI_ARGUMENTS_NODES,
                       "BERTH_DEVICE_NODES: expected device files of 'nvidia0,nvidia1', got none");
    setenv("BERTH_DEVICE_NODES", "/dev/nvidia0:/dev/nvidiactl:/dev/nvidia1", 1);
    setenv("BERTH_SOCKET", "/tmp/a b/berth.sock", 1);
    setenv("RANK", "0", 1);
    check_arguments(CDI_ARGUMENTS_CDI,
                    "--device=nvidia.com/gpu=0\n--device=berth/gpu=nvidia1\n--env=BERTH_LEASE=7\n"
                    "--env=BERTH_SOCKET\n--env=BERTH_DEVICES=nvidia0,nvidia1\n--env=RANK=0\n"
                    "--env=NVIDIA_VISIBLE_DEVICES=void\n");
    check_arguments(CDI_ARGUMENTS_NODES,
                    "--device=/dev/nvidia0\n--device=/dev/nvidiactl\n--device=/dev/nvidia1\n"
                    "--env=BERTH_LEASE=7\n--env=BERTH_SOCKET\n"
                    "--env=BERTH_DEVICES=nvidia0,nvidia1\n--env=RANK=0\n"
                    "--env=NVIDIA_VISIBLE_DEVICES=void\n");
    setenv("BERTH_DEVICE_NODES", "/dev/x*", 1);
    check_no_arguments(CDI_ARGUMENTS_NODES,
                       "expected a device without special characters, got '/dev/x*'");
}

static void arguments_without_devices(void **state)
{
    (void)state;
    setenv("BERTH_DEVICES", "", 1);
    setenv("BERTH_CDI_DEVICES", "", 1);
    setenv("BERTH_DEVICE_NODES", "", 1);
    check_arguments(CDI_ARGUMENTS_CDI, "--env=BERTH_DEVICES=\n--env=NVIDIA_VISIBLE_DEVICES=void\n");
    check_arguments(CDI_ARGUMENTS_NODES,
                    "--env=BERTH_DEVICES=\n--env=NVIDIA_VISIBLE_DEVICES=void\n");
}

static void arguments_of_a_shared_device(void **state)
{
    (void)state;
    setenv("BERTH_DEVICES", "nvidia0", 1);
    setenv("BERTH_CDI_DEVICES", "berth/gpu=nvidia0", 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/run/mps", 1);
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "12.5", 1);
    check_arguments(CDI_ARGUMENTS_CDI,
                    "--device=berth/gpu=nvidia0\n--ipc=host\n--volume=/run/mps:/run/mps\n"
                    "--env=BERTH_DEVICES=nvidia0\n--env=CUDA_MPS_PIPE_DIRECTORY=/run/mps\n"
                    "--env=CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=12.5\n"
                    "--env=NVIDIA_VISIBLE_DEVICES=void\n");
    unsetenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/run:mps", 1);
    check_no_arguments(CDI_ARGUMENTS_CDI,
                       "CUDA_MPS_PIPE_DIRECTORY: expected a path without special characters, got "
                       "'/run:mps'");
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

static void arguments_of_a_recorded_machine(void **state)
{
    (void)state;
    setenv("BERTH_SYSROOT", "/usr/../usr/", 1);
    setenv("BERTH_DEVICES", "dri0", 1);
    setenv("BERTH_DEVICE_NODES", "/dev/dri/card0", 1);
    check_arguments(CDI_ARGUMENTS_NODES,
                    "--device=/usr/dev/dri/card0:/dev/dri/card0\n--env=BERTH_DEVICES=dri0\n"
                    "--env=NVIDIA_VISIBLE_DEVICES=void\n");
}

static int attempt_read(void *context)
{
    struct cdi_registry registry = {0};
    int code = cdi_files_read(false, &registry, NULL);

    (void)context;
    cdi_registry_finish(&registry);
    return code;
}

static int attempt_arguments(void *context)
{
    struct text out = {0};
    int code = cdi_arguments_write(*(enum cdi_arguments *)context, &out, NULL);

    text_finish(&out);
    return code;
}

static int attempt_write(void *context)
{
    return cdi_files_write("made", context, NULL);
}

static void no_memory(void **state)
{
    enum cdi_arguments how = CDI_ARGUMENTS_NODES;
    struct text document = {0};

    (void)state;
    make_directories();
    offer("one/a.yaml", "a.com/gpu", "0", "/dev/a");
    offer("two/b.json", "b.com/gpu", "0", "/dev/b");
    setenv("BERTH_CDI_DIRECTORIES", "one:two", 1);
    assert_true(failing_allocator_try_all(attempt_read, NULL) > 10);
    unsetenv("BERTH_CDI_DIRECTORIES");
    setenv("BERTH_SYSROOT", "missing", 1);
    assert_true(failing_allocator_try_all(attempt_read, NULL) > 1);
    setenv("BERTH_DEVICES", "dri0", 1);
    setenv("BERTH_DEVICE_NODES", "/dev/dri/card0", 1);
    assert_true(failing_allocator_try_all(attempt_arguments, &how) > 1);
    text_append(&document, "text\n");
    assert_true(failing_allocator_try_all(attempt_write, &document) > 1);
    text_finish(&document);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(files_in_order),
        TEST(twice_in_a_directory),
        TEST(the_usual_directories),
        TEST(what_is_no_file_of_theirs_is_skipped),
        TEST(too_many_entries),
        TEST(writing),
        TEST(writing_fails),
        TEST(arguments),
        TEST(arguments_without_devices),
        TEST(arguments_of_a_shared_device),
        TEST(arguments_of_a_recorded_machine),
        TEST(no_memory),
    };

    return cmocka_run_group_tests_name("cdi_files", tests, NULL, NULL);
}
