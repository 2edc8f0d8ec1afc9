/* SPDX-License-Identifier: Apache-2.0
 *
 * Random histories of the engine, with every promise checked after every step. The first argument
 * selects a part of the seeds: "1/2" is the first of two parts.
 *
 *     BERTH_PROMISES_SEED=N   runs only the history of this seed
 */
#include "support/unit.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "promises/generate.h"
#include "promises/shrink.h"
#include "support/steps.h"

enum { STEPS = 250000, STEPS_MAX = 5000000, STEPS_OF_ONE = 250, FIRST_SEED = 1000 };

static unsigned long part = 1;
static unsigned long parts = 1;

static void report(struct history *history, const struct search_terms *terms,
                   struct verdict *verdict)
{
    struct text words = {0};
    struct text trace = {0};
    struct search_terms traced = *terms;

    history_shrink(history, terms, verdict);
    history_describe(history, &words);
    traced.trace = &trace;
    history_run(history, &traced, verdict);
    fprintf(stderr,
            "promise %d: %s\n(operation %" PRIu32 "; run again with BERTH_PROMISES_SEED=%" PRIu64
            ")\n%sevents:\n%s",
            verdict->promise, verdict->message, verdict->operation, history->seed,
            text_string(&words), text_string(&trace));
    text_finish(&words);
    text_finish(&trace);
}

static void print_tally(const struct tally *tally, unsigned long histories)
{
    print_message(
        "%lu steps in %lu histories, %lu checks of the whole state: %lu grants (%lu after "
        "waiting, %lu past an earlier claim, %lu within a lease), %lu claims waited\n",
        tally->steps, histories, tally->checks, tally->granted, tally->granted_later,
        tally->overtakes, tally->within, tally->waits);
    print_message(
        "%lu refused, %lu timed out, %lu impossible, %lu without device, %lu notices, %lu "
        "revoked, %lu expired, %lu restores, %lu picks, %lu reservations (%lu with start, "
        "%lu of them promised before), %lu held by limits\n",
        tally->refused, tally->timed_out, tally->impossible, tally->no_device, tally->notices,
        tally->revoked, tally->expired, tally->restores, tally->picks, tally->reservations,
        tally->starts_known, tally->promises, tally->limited);
    print_message("%lu direct grants (%lu where a claim would wait), %lu refused, %lu returned "
                  "(%lu to wait), %lu choices by rank, %lu claims past reserved devices\n",
                  tally->given, tally->given_past, tally->not_given, tally->returned,
                  tally->returned_to_wait, tally->ranked, tally->for_others);
}

/* Checks that the histories had enough events of each kind. */
static void check_tally(const struct tally *tally)
{
    unsigned long steps = tally->steps;

    assert_true(tally->granted > steps / 20 && tally->granted_later > steps / 100);
    assert_true(tally->overtakes > steps / 1000 && tally->within > steps / 1000);
    assert_true(tally->notices > steps / 1000 && tally->revoked > steps / 10000);
    assert_true(tally->expired > steps / 1000 && tally->timed_out > steps / 1000);
    assert_true(tally->impossible > steps / 1000 && tally->no_device > steps / 5000);
    assert_true(tally->restores > steps / 1000 && tally->starts_known > steps / 1000 &&
                tally->promises > steps / 1000);
    assert_true(tally->limited > steps / 1000);
    assert_true(tally->given_past > steps / 1000 && tally->not_given > steps / 1000);
    assert_true(tally->returned > steps / 200 && tally->returned_to_wait > steps / 1000);
    assert_true(tally->ranked > steps / 2000 && tally->for_others > steps / 1000);
}

/* The report that is printed if the current history never ends. */
static char endless[96];

static void report_endless(int number)
{
    (void)number;
    if (write(STDERR_FILENO, endless, strlen(endless)) < 0)
        _exit(EXIT_FAILURE);
    _exit(EXIT_FAILURE);
}

/* Ends the program when a history takes much longer than any should. */
static void watch(uint64_t seed)
{
    const struct itimerval time = {.it_value = {.tv_sec = 60}};

    snprintf(endless, sizeof(endless),
             "promise 4: it never ends (run again with BERTH_PROMISES_SEED=%" PRIu64 ")\n", seed);
    signal(SIGVTALRM, report_endless);
    setitimer(ITIMER_VIRTUAL, &time, NULL);
}

static void run_seed(uint64_t seed, struct tally *tally)
{
    const struct search_terms terms = {.twice = seed % 4 == 0};
    struct history history;
    struct verdict verdict;

    watch(seed);
    if (!history_make(&history, seed, STEPS_OF_ONE, &terms, tally, &verdict) ||
        (terms.twice && !history_run(&history, &terms, &verdict))) {
        signal(SIGVTALRM, SIG_IGN); /* shrinking may take longer */
        report(&history, &terms, &verdict);
        history_finish(&history);
        fail_msg("promise %d: %s (seed %" PRIu64 ")", verdict.promise, verdict.message, seed);
    }
    history_finish(&history);
}

static void promises_hold(void **state)
{
    const char *only = getenv("BERTH_PROMISES_SEED");
    unsigned long steps = test_steps_up_to(STEPS, STEPS_MAX);
    struct tally tally = {0};
    unsigned long histories = 0;

    (void)state;
    if (only != NULL) {
        run_seed(strtoull(only, NULL, 10), &tally);
        return;
    }
    for (; tally.steps < steps; histories++)
        run_seed(FIRST_SEED + histories * parts + part - 1, &tally);
    print_tally(&tally, histories);
    check_tally(&tally);
}

/* Shrinks long histories with a made-up fault: the third grant of slot 1. */
static void failing_histories_become_short(void **state)
{
    const struct search_terms terms = {.fault_at = 3};
    struct tally tally = {0};
    unsigned found = 0;

    (void)state;
    if (getenv("BERTH_PROMISES_SEED") != NULL)
        return;
    for (uint64_t seed = 1; found < 3 && seed < 100; seed++) {
        struct history history;
        struct verdict verdict;

        if (!history_make(&history, seed, STEPS_OF_ONE, &terms, &tally, &verdict) &&
            verdict.promise == 99) {
            size_t before = history.count;

            history_shrink(&history, &terms, &verdict);
            assert_int_equal(verdict.promise, 99);
            assert_in_range(history.count, 1, 15);
            found += before > 30;
        }
        history_finish(&history);
    }
    assert_int_equal(found, 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promises_hold),
        cmocka_unit_test(failing_histories_become_short),
    };

    if (argc > 1) {
        char *slash = strchr(argv[1], '/');

        part = strtoul(argv[1], NULL, 10);
        parts = slash == NULL ? 1 : strtoul(slash + 1, NULL, 10);
    }
    return cmocka_run_group_tests_name("promises", tests, NULL, NULL);
}
