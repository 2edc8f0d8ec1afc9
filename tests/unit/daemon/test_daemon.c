/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts that fail: whichever part fails, the parts before it are finished, and nothing is left.
 * End-to-end tests have the starts that succeed.
 */
#include "support/unit.h"

#include "daemon/daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/system/file.h"
#include "daemon/leases/journal_write.h"
#include "support/daemons/pool_stage.h"
#include "support/engine/machines.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"

struct place {
    void *directory;
    char socket[512];
    char inventory[512];
    char journal[512];
    struct pool_settings settings;
};

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    const char *directory;

    assert_non_null(place);
    assert_int_equal(temporary_directory_enter(&place->directory), 0);
    directory = place->directory;
    snprintf(place->socket, sizeof(place->socket), "%s/berth.sock", directory);
    snprintf(place->journal, sizeof(place->journal), "%s/berth.journal", directory);
    snprintf(place->inventory, sizeof(place->inventory), "%s/devices.yaml", directory);
    write_file(place->inventory, "devices:\n  - {vendor: nvidia, index: 0}\n");
    place->settings = (struct pool_settings){
        .socket = place->socket,
        .inventory = place->inventory,
        .configuration = "/made-up/berth.yaml",
        .own = true,
        .listener = -1,
        .log = memfd_create("log", MFD_CLOEXEC),
        .ready = -1,
    };
    setenv("BERTH_SUBUID", "/made-up/subuid", 1);
    *state = place;
    return 0;
}

static int end(void **state)
{
    struct place *place = *state;
    int result;
    sigset_t none;

    /* The daemon blocks signals and ignores SIGPIPE. */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    close(place->settings.log);
    result = temporary_directory_leave(&place->directory);
    free(place);
    return result;
}

static int count_descriptors(void)
{
    int count = 0;

    for (int descriptor = 0; descriptor < 1024; descriptor++)
        count += fcntl(descriptor, F_GETFD) >= 0;
    return count;
}

/* Writes a journal with a lease, on devices that are not the inventory's: no daemon starts by it.
 */
static void leave_other_lease(const struct place *place)
{
    struct pool_stage *stage = pool_stage_make(
        &(struct pool_stage_settings){.parts = pool_stage_all, .part_count = POOL_STAGE_ALL});

    stage->pool.journal_path = copy_of(place->journal);
    pool_stage_claim(stage, &(struct stage_claim){.hold = LEASE_HOLD_NOTHING});
    assert_int_equal(journal_write_checkpoint(&stage->pool, NULL), 0);
    pool_stage_free(stage);
}

static const char *log_of(const struct place *place)
{
    static char bytes[4096];
    ssize_t length = pread(place->settings.log, bytes, sizeof(bytes) - 1, 0);

    assert_true(length >= 0);
    bytes[length] = '\0';
    return bytes;
}

static void a_wrong_inventory_ends_the_start(void **state)
{
    struct place *place = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    int before = count_descriptors();

    write_file(place->inventory, "devices: 7\n");
    assert_true(daemon_run(&place->settings, &error) < 0);
    assert_contains(error.message, "devices.yaml:1:");
    assert_contains(log_of(place), "error reason=\"");
    assert_contains(log_of(place), "devices.yaml:1:");
    assert_int_equal(count_descriptors(), before);
}

static void a_journal_that_does_not_fit_ends_the_start(void **state)
{
    struct place *place = *state;
    struct berth_error error = BERTH_ERROR_INIT;
    struct text former = {0};
    struct text now = {0};
    int before = count_descriptors();

    leave_other_lease(place);
    assert_int_equal(file_read(place->journal, 1 << 20, &former, NULL), 0);
    assert_int_equal(daemon_run(&place->settings, &error), BERTH_ERROR_BUSY);
    assert_contains(error.message, "has changed, and leases are held on its former devices");
    assert_int_equal(count_descriptors(), before);
    /* The leases are still there for a daemon with the former inventory. */
    assert_int_equal(file_read(place->journal, 1 << 20, &now, NULL), 0);
    assert_int_equal(now.length, former.length);
    assert_memory_equal(now.bytes, former.bytes, now.length);
    text_finish(&former);
    text_finish(&now);
}

/* Wherever memory runs out: an error, and nothing is left. LeakSanitizer sees the rest. */
static void every_part_may_find_no_memory(void **state)
{
    struct place *place = *state;
    int before = count_descriptors();
    unsigned long count = 0;
    bool was_refused;

    leave_other_lease(place);
    do {
        struct berth_error error = BERTH_ERROR_INIT;
        int code;

        failing_allocator_start(++count);
        code = daemon_run(&place->settings, &error);
        was_refused = failing_allocator_stop();
        assert_true(code < 0);
        if (code != BERTH_ERROR_MEMORY && code != BERTH_ERROR_BUSY)
            fail_msg("with allocation %lu refused: %s", count, error.message);
        assert_int_equal(count_descriptors(), before);
    } while (was_refused);
    assert_true(count > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wrong_inventory_ends_the_start, begin, end),
        cmocka_unit_test_setup_teardown(a_journal_that_does_not_fit_ends_the_start, begin, end),
        cmocka_unit_test_setup_teardown(every_part_may_find_no_memory, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
