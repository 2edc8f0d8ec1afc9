/* SPDX-License-Identifier: Apache-2.0
 *
 * Replicas that are claims of their own (best-effort). Each is a berth of its own that waits, holds
 * its lease and gives it back by itself, so that the last can have the devices of the first. Here
 * they are only kept together: when one fails, the others are stopped.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/claiming.h"
#include "cli/exit_codes.h"
#include "cli/job.h"
#include "cli/reach.h"
#include "cli/run.h"
#include "launch/supervise.h"

/* Asks whether one replica could ever be: a refusal is then said once, not by each of them. */
static int ask_first(struct run_line *line, struct berth_error *error)
{
    struct request one = line->request.request;
    struct claim_facts facts = {.request = &one};
    struct wire_message answer;
    struct claim claim;
    struct reach reach;
    int code = reach_open(&reach, line->request.inventory, error);

    if (code < 0)
        return code;
    one.replicas = 1;
    one.scheduling = SCHEDULING_UNSAID;
    one.nonblock = true;
    one.wait.known = false;
    facts.inventory = reach.address.inventory;
    code = claim_init(&claim, &facts, error);
    claim.question.type = WIRE_TEST;
    if (code == 0)
        code = session_ask(&reach.session, &claim.question, WIRE_DONE, &answer, error);
    if (code == 0)
        wire_message_finish(&answer);
    claim_finish(&claim);
    reach_close(&reach);
    if (code == BERTH_ERROR_BUSY || code == BERTH_ERROR_TIMED_OUT)
        return 0;
    if (one.or_cpu && (code == BERTH_ERROR_IMPOSSIBLE || code == BERTH_ERROR_NO_DEVICE))
        return 0;
    return code;
}

/* The file of this program, for starting it again. */
static char *own_program(void)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length > 0) {
        path[length] = '\0';
        if (access(path, X_OK) == 0)
            return strdup(path);
    }
    return strdup("/proc/self/exe"); /* replaced by a newer one meanwhile */
}

/* A job_start: `context` are the words of a copy, the third of which is its number. */
static int start_copy(const void *context, struct supervisor *supervisor, uint32_t number)
{
    char **words = *(char **const *)context;
    const struct launch_copy copy = {words, environ};
    struct berth_error error = BERTH_ERROR_INIT;
    char digits[16];

    snprintf(digits, sizeof(digits), "%u", number);
    words[2] = digits;
    return supervisor_start(supervisor, &copy, &error) < 0 ? run_fail(&verb_run, &error) : 0;
}

/* Runs all copies. Returns the exit code, or a negative error code. */
static int run_copies(uint32_t replicas, int argc, char **argv, struct berth_error *error)
{
    char *program = own_program();
    char **words = calloc((size_t)argc + 3, sizeof(*words));
    int code = EXIT_GOOD;

    if (program == NULL || words == NULL) {
        code = error_set_memory(error);
    } else {
        words[0] = program;
        words[1] = (char *)verb_replica.name;
        memcpy(words + 3, argv + 1, (size_t)(argc - 1) * sizeof(*words));
        code = job_run_copies(verb_run.name, start_copy, &words, replicas);
    }
    free(words);
    free(program);
    return code;
}

int run_replicas(struct run_line *line, int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code = ask_first(line, &error);

    if (code == 0)
        code = run_copies(line->request.request.replicas, argc, argv, &error);
    return code < 0 ? run_fail(&verb_run, &error) : code;
}
