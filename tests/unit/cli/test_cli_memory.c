/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole commands in which one allocation fails: berth prints an error and nothing else, and leaks
 * nothing.
 */
#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "cli/exit_codes.h"
#include "support/failing_allocator.h"
#include "support/temporary_directory.h"
#include "support/views/captured_output.h"

static const char inventory[] =
    "devices:\n"
    "- {vendor: nvidia, index: 0, name: A100, memory: 80GiB, free: 79GiB, cap: 8.0, cpus: 0-3,\n"
    "   pci: '07:00.0', uuid: GPU-0, utilization: 0.5, health: ok, nodes: [/dev/nvidia0]}\n"
    "- {vendor: nvidia, index: 1, name: A100, memory: 80GiB, parent: card, health: sick}\n"
    "- {vendor: nvidia, index: 2, mig: 1}\n"
    "- {vendor: nvidia, index: 2}\n"
    "- {vendor: amd, index: 0}\n"
    "links:\n"
    "- {between: [nvidia0, nvidia1], kind: nvlink, lanes: 12}\n"
    "- {between: [nvidia0, nvidia1], kind: pix}\n";

/* Setup: a temporary directory with an inventory. No other inventory and no daemon can be found. */
static int enter(void **state)
{
    FILE *file;

    unsetenv("BERTH_INVENTORY");
    unsetenv("BERTH_SOCKET");
    setenv("BERTH_RUNTIME_DIR", "/proc/no/berth", 1);
    setenv("BERTH_PROBE", "/nonexistent", 1);
    if (temporary_directory_enter(state) < 0)
        return -1;
    file = fopen("machine.yaml", "w");
    if (file == NULL || fputs(inventory, file) < 0)
        return -1;
    return fclose(file);
}

struct refusing {
    unsigned long n;
    bool refused;
};

static void start(void *context)
{
    failing_allocator_start(((struct refusing *)context)->n);
}

static void stop(void *context)
{
    ((struct refusing *)context)->refused = failing_allocator_stop();
}

/* Checks that stderr has one line with the error, and stdout nothing. */
static void check_complaint(void)
{
    struct text output = captured_read(CAPTURED_OUTPUT);
    struct text errors = captured_read(CAPTURED_ERRORS);
    const char *message = text_string(&errors);

    assert_string_equal(text_string(&output), "");
    assert_int_equal(strncmp(message, "berth: ", strlen("berth: ")), 0);
    assert_non_null(strstr(message, "out of memory\n"));
    assert_int_equal(strcspn(message, "\n"), errors.length - 1);
    text_finish(&output);
    text_finish(&errors);
}

/* Runs the command with the first, the second, ... allocation failing, until all succeed. */
static void check_command(const char *const *words, int exit_code)
{
    struct refusing refusing = {.refused = true};

    while (refusing.refused) {
        int code;

        refusing.n++;
        code = captured_run(words, start, stop, &refusing);
        if (code != (refusing.refused ? EXIT_BERTH : exit_code))
            fail_msg("%s: allocation %lu %s: exit code %d", words[0], refusing.n,
                     refusing.refused ? "refused" : "not reached", code);
        if (refusing.refused)
            check_complaint();
    }
    /* Some allocations must have failed: a command allocates at least its output. */
    assert_true(refusing.n > 1 || exit_code == EXIT_USAGE);
}

#define COMMAND(name, exit_code, ...)                           \
    static void name(void **state)                              \
    {                                                           \
        static const char *const words[] = {__VA_ARGS__, NULL}; \
                                                                \
        (void)state;                                            \
        check_command(words, exit_code);                        \
    }

COMMAND(devices, EXIT_GOOD, "devices", "--inventory", "machine.yaml")
COMMAND(devices_as_json, EXIT_GOOD, "devices", "--json", "--inventory=machine.yaml")
COMMAND(devices_without_a_probe, EXIT_BERTH, "devices")
COMMAND(devices_with_a_bad_deadline, EXIT_USAGE, "devices", "--deadline", "1ms")
COMMAND(devices_help, EXIT_GOOD, "devices", "--help")
COMMAND(devices_of_no_file, EXIT_USAGE, "devices", "--inventory", "none.yaml")
COMMAND(plan, EXIT_GOOD, "plan", "--inventory", "machine.yaml")
COMMAND(plan_as_json, EXIT_GOOD, "plan", "--json", "--inventory", "machine.yaml", "-n", "A100:1",
        "--busy", "amd0", "--must", "nvidia0", "--avoid", "nvidia1", "--name", "x")
COMMAND(plan_of_replicas, EXIT_GOOD, "plan", "--inventory", "machine.yaml", "--replicas", "2",
        "--vendor", "any", "--sharing", "time-slice", "--share", "0.5", "--policy", "first")
COMMAND(plan_to_wait, EXIT_GOOD, "plan", "--inventory", "machine.yaml", "--busy", "nvidia0",
        "--device", "nvidia0")
COMMAND(plan_for_ever, EXIT_IMPOSSIBLE, "plan", "--inventory", "machine.yaml", "-n", "9")
COMMAND(plan_without_a_probe, EXIT_BERTH, "plan")
COMMAND(plan_with_an_unknown_choice, EXIT_USAGE, "plan", "--priority", "urgent")
COMMAND(plan_with_an_unknown_policy, EXIT_USAGE, "plan", "--policy", "worst")
COMMAND(cdi_without_files, EXIT_IMPOSSIBLE, "cdi", "--inventory", "machine.yaml")
COMMAND(cdi_without_a_probe, EXIT_BERTH, "cdi")
COMMAND(drain_of_no_device, EXIT_USAGE, "drain", "nvidia0,nvidia1", "--reason", "x", "gpu")
COMMAND(adopt_of_no_process, EXIT_BERTH, "adopt", "2147483647", "--name", "x", "-n", "A100:1")
COMMAND(help, EXIT_GOOD, "help")
COMMAND(help_of_a_verb, EXIT_GOOD, "help", "plan")
COMMAND(version, EXIT_GOOD, "--version")
COMMAND(an_unknown_verb, EXIT_USAGE, "devcies")
COMMAND(an_unknown_option, EXIT_USAGE, "devices", "--jsn")

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter, temporary_directory_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(devices),
        TEST(devices_as_json),
        TEST(devices_without_a_probe),
        TEST(devices_with_a_bad_deadline),
        TEST(devices_help),
        TEST(devices_of_no_file),
        TEST(plan),
        TEST(plan_as_json),
        TEST(plan_of_replicas),
        TEST(plan_to_wait),
        TEST(plan_for_ever),
        TEST(plan_without_a_probe),
        TEST(plan_with_an_unknown_choice),
        TEST(plan_with_an_unknown_policy),
        TEST(cdi_without_files),
        TEST(cdi_without_a_probe),
        TEST(drain_of_no_device),
        TEST(adopt_of_no_process),
        TEST(help),
        TEST(help_of_a_verb),
        TEST(version),
        TEST(an_unknown_verb),
        TEST(an_unknown_option),
    };

    return cmocka_run_group_tests_name("cli_memory", tests, NULL, NULL);
}
