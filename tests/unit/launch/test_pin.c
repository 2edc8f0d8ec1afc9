/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "launch/pin.h"

#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"
#include "support/assert_error.h"
#include "support/engine/machines.h"

enum { CPUS_MAX = 65536 };

/* Appends the CPUs that this process may use, as a list. */
static void append_allowed(struct text *out)
{
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    struct bitset cpus;

    assert_int_equal(bitset_init(&cpus, CPUS_MAX), 0);
    CPU_ZERO_S(size, set);
    assert_int_equal(sched_getaffinity(0, size, set), 0);
    for (size_t cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (CPU_ISSET_S(cpu, size, set))
            bitset_add(&cpus, cpu);
    }
    bitset_format_ranges(&cpus, out);
    bitset_finish(&cpus);
    CPU_FREE(set);
}

/* Makes two devices with these CPUs near them; NULL: unknown. */
static struct machine near(const char *first, const char *second)
{
    struct machine machine = {0};

    machine_add_ids(&machine, "nvidia0,nvidia1");
    if (first != NULL)
        machine.devices.items[0].cpus = copy_of(first);
    if (second != NULL)
        machine.devices.items[1].cpus = copy_of(second);
    return machine;
}

static void check_chosen(const char *first, const char *second, const char *wanted)
{
    struct machine machine = near(first, second);
    struct berth_error error = BERTH_ERROR_INIT;
    struct text chosen = {0};
    struct bitset cpus;

    assert_int_equal(pin_choose(machine.devices.items, 2, &cpus, &error), 0);
    bitset_format_ranges(&cpus, &chosen);
    assert_string_equal(text_string(&chosen), wanted);
    text_finish(&chosen);
    bitset_finish(&cpus);
    machine_finish(&machine);
}

static void what_may_be_used_is_chosen(void **state)
{
    struct text allowed = {0};
    char first[16];

    (void)state;
    append_allowed(&allowed);
    snprintf(first, sizeof(first), "%d", atoi(text_string(&allowed)));
    check_chosen("0-65535", NULL, text_string(&allowed));
    check_chosen(NULL, "0-65535", text_string(&allowed));
    check_chosen(first, first, first);
    check_chosen(first, "65535", first);
    check_chosen("many", first, first);
    text_finish(&allowed);
}

static void check_refused(const char *first, const char *second, const char *message)
{
    struct machine machine = near(first, second);
    struct berth_error error = BERTH_ERROR_INIT;
    struct bitset cpus;

    assert_fails(pin_choose(machine.devices.items, 2, &cpus, &error), BERTH_ERROR_NOT_FOUND, &error,
                 message);
    machine_finish(&machine);
}

static void what_is_not_known_is_not_guessed(void **state)
{
    (void)state;
    check_refused(NULL, NULL, "the CPUs near nvidia0,nvidia1 are not known");
    check_refused("", NULL, "the CPUs near nvidia0,nvidia1 are not known");
    check_refused("many", NULL, "the CPUs near nvidia0,nvidia1 are not known");
    check_refused("65536", NULL, "the CPUs near nvidia0,nvidia1 are not known");
    check_refused("65535", NULL, "the CPUs near nvidia0,nvidia1 are not allowed for this process");
}

static void a_process_stays_there(void **state)
{
    struct text allowed = {0};
    int status;
    pid_t pid;

    (void)state;
    append_allowed(&allowed);
    pid = fork();
    if (pid == 0) {
        struct text now = {0};
        struct bitset cpus;
        size_t first = (size_t)atoi(text_string(&allowed));

        bitset_init(&cpus, first + 1);
        bitset_add(&cpus, first);
        pin_apply(&cpus);
        append_allowed(&now);
        _exit((size_t)atoi(text_string(&now)) == first && strpbrk(text_string(&now), ",-") == NULL
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    text_finish(&allowed);
}

/* A set without any allowed CPU changes nothing. */
static void an_impossible_set_changes_nothing(void **state)
{
    struct text before = {0};
    struct text after = {0};
    struct bitset cpus;

    (void)state;
    append_allowed(&before);
    assert_int_equal(bitset_init(&cpus, CPUS_MAX), 0);
    bitset_add(&cpus, CPUS_MAX - 1);
    pin_apply(&cpus);
    append_allowed(&after);
    assert_string_equal(text_string(&after), text_string(&before));
    bitset_finish(&cpus);
    text_finish(&before);
    text_finish(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_may_be_used_is_chosen),
        cmocka_unit_test(what_is_not_known_is_not_guessed),
        cmocka_unit_test(a_process_stays_there),
        cmocka_unit_test(an_impossible_set_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
