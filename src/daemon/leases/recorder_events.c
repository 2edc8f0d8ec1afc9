/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/recorder_events.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/system/program.h"
#include "daemon/leases/pool.h"
#include "daemon/stream/ended_leases.h"
#include "daemon/stream/recorder_process.h"
#include "spec/configuration/history_file.h"

static bool open_connection(void *context, int descriptor)
{
    struct pool *pool = context;

    pool->recorder_connection = connection_open_recorder(&pool->clients, descriptor);
    return pool->recorder_connection != NULL;
}

static void shut_connection_down(void *context)
{
    struct pool *pool = context;

    if (pool->recorder_connection != NULL)
        shutdown(pool->recorder_connection->watch.descriptor, SHUT_RDWR);
}

static void note_written(void *context, uint64_t count)
{
    struct pool *pool = context;

    ended_leases_note_written(pool->ended_leases, count);
}

static void note_problems(void *context)
{
    struct pool *pool = context;

    followers_note(pool->followers, WIRE_NEWS_LOAD);
}

/* The caller frees the order's file. */
static int make_order(const struct pool *pool, struct recorder_order *ret_order, char **ret_file,
                      struct berth_error *error)
{
    const struct configuration *rules = &pool->rules;
    int code = history_file_find(
        &(struct history_file_pool){
            .socket = pool->settings.socket,
            .is_own = pool->settings.own,
            .is_made_up = pool->settings.inventory != NULL,
        },
        &rules->history, ret_file, error);

    if (code < 0)
        return code;
    *ret_order = (struct recorder_order){
        .file = *ret_file,
        .keep = rules->history_keep,
        .size = rules->history_size.value,
        .shows_commands = configuration_shows_commands(rules, pool->settings.own),
    };
    return 0;
}

static void find_program(char path[PATH_MAX])
{
    const char *named = getenv("BERTH_RECORDER");

    if (named != NULL && *named == '/')
        snprintf(path, PATH_MAX, "%s", named);
    else
        program_find("berth-recorder", path, PATH_MAX);
}

static int64_t read_timeout(struct pool *pool)
{
    const char *given = getenv("BERTH_RECORDER_TIMEOUT");
    struct berth_error error = BERTH_ERROR_INIT;
    int64_t timeout = RECORDER_TIMEOUT;

    if (given != NULL && *given != '\0' && quantity_parse_duration(given, &timeout, &error) < 0)
        log_line(&pool->log, pool_clock_now(&pool->clock), "error",
                 "what=BERTH_RECORDER_TIMEOUT reason=%s", log_quote(error.message).text);
    return timeout;
}

int recorder_events_init(struct pool *pool, struct berth_error *error)
{
    struct recorder_order order;
    char program[PATH_MAX];
    char *file;
    int code = make_order(pool, &order, &file, error);

    if (code < 0)
        return code;
    find_program(program);
    code = recorder_process_create(&pool->recorder_process,
                                   &(struct recorder_process_settings){
                                       .loop = &pool->loop,
                                       .log = &pool->log,
                                       .clock = &pool->clock,
                                       .program = program,
                                       .pool_name = pool->name,
                                       .is_own = pool->settings.own,
                                       .timeout = read_timeout(pool),
                                       .events =
                                           {
                                               .context = pool,
                                               .connect = open_connection,
                                               .disconnect = shut_connection_down,
                                               .written = note_written,
                                               .problems_changed = note_problems,
                                           },
                                   },
                                   &order, error);
    free(file);
    if (code == 0)
        ended_leases_set_written(pool->ended_leases,
                                 recorder_process_file(pool->recorder_process) != NULL);
    return code;
}

void recorder_events_finish(struct pool *pool)
{
    recorder_process_destroy(pool->recorder_process);
    pool->recorder_process = NULL;
}

void recorder_events_apply_rules(struct pool *pool)
{
    struct recorder_order order;
    char *file;

    if (make_order(pool, &order, &file, NULL) < 0)
        return;
    recorder_process_set_order(pool->recorder_process, &order);
    free(file);
    ended_leases_set_written(pool->ended_leases,
                             recorder_process_file(pool->recorder_process) != NULL);
    if (pool->lease_count > 0)
        recorder_process_want(pool->recorder_process);
}

void recorder_events_hung_up(struct pool *pool)
{
    pool->recorder_connection = NULL;
    if (pool->recorder_process != NULL)
        recorder_process_hung_up(pool->recorder_process);
}
