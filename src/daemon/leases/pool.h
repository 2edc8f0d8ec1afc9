/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool: the state of all parts of the daemon, for the coordinator (this folder), the handlers
 * and the daemon itself. The parts below never see it. It has one thread and one loop: a message or
 * the end of a process arrives, the engine decides, the journal records the decision, and then the
 * clients are notified.
 *
 *     core/       the loop, the log, clocks, child processes
 *     clients/    connections, quotas, permissions
 *     journal/    the journal file and its records
 *     stream/     followers, ended leases, berth-recorder
 *     devices/    berth-probe's reports, locks between pools
 *     processes/  assigns processes to leases
 *     mps/        control daemons of MPS
 *     leases/     jobs, their ends, handover, drain: the coordinator of the parts above
 *     handlers/   one function for each type of message
 */
#ifndef DAEMON_LEASES_POOL_H
#define DAEMON_LEASES_POOL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id_map.h"
#include "base/list.h"
#include "base/text/text.h"
#include "base/vector.h"
#include "daemon/clients/clients.h"
#include "daemon/clients/connection.h"
#include "daemon/core/accounts.h"
#include "daemon/core/launcher.h"
#include "daemon/core/log.h"
#include "daemon/core/loop.h"
#include "daemon/core/pool_clock.h"
#include "daemon/journal/journal_file.h"
#include "daemon/leases/engine_events.h"
#include "daemon/leases/job.h"
#include "daemon/leases/request_cache.h"
#include "daemon/leases/watcher.h"
#include "daemon/mps/mps_rules.h"
#include "daemon/processes/foreign_processes.h"
#include "daemon/processes/reader_pool.h"
#include "daemon/processes/spared_processes.h"
#include "daemon/stream/followers.h"
#include "daemon/stream/pool_counts.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "model/machine/machine_report.h"
#include "spec/configuration/configuration.h"
#include "wire/wire.h"

struct pool;
struct job;

/* The capabilities that were found when the daemon started, as bits. */
struct privileges {
    uint32_t daemon;
    uint32_t launcher; /* those that the launcher can give to programs */
};

struct pool_settings {
    const char *socket;        /* path */
    const char *inventory;     /* absolute; NULL: the hardware */
    const char *configuration; /* a file; NULL: the default path, where no file is needed */
    const char *name_program;  /* looks names up; NULL: this program */
    bool own;                  /* a user's own pool: the daemon ends when it is idle */
    int64_t idle;              /* time until an idle daemon ends, in nanoseconds */
    int listener;              /* a socket that already listens; -1: none */
    bool owns_path;            /* the daemon removes that socket's path at its end */
    int log;                   /* a descriptor */
    const char *log_path;      /* the log's file; NULL: the daemon did not open one */
    int ready;                 /* gets "ready" or the error; -1: none */
};

/* Functions of the handlers that the coordinator calls. daemon_run() sets them first. */
struct pool_handlers {
    /* Handles the deferred claims and tests, unless an answer is still missing. */
    void (*continue_claims)(struct pool *pool);
    /* Tries to adopt the watcher's process again. Returns true if the claim has its answer. */
    bool (*retry_adoption)(struct watcher *watcher);
};

struct pool {
    struct pool_settings settings;
    struct pool_handlers handlers;
    struct loop loop;
    struct log log;
    struct pool_clock clock;
    uint32_t owner;          /* uid */
    pid_t pid;               /* of the daemon */
    bool may_become_others;  /* programs can be run as other users */
    char *name;              /* random; names one sequence of ids */
    uint64_t inventory_key;  /* of the file's path */
    uint64_t inventory_hash; /* of the file's contents */
    struct engine *engine;
    uint32_t vendors;
    struct configuration rules; /* as the engine has them */
    bool is_looking_up_names;   /* another process does it, for a reload */
    bool must_reload_again;     /* a further reload follows */
    struct number_list limited; /* uids with the configuration's limit for each user */

    struct launcher launcher; /* starts programs with rights that this process does not have */
    struct launcher_entry launcher_entries[LAUNCHER_PROGRAMS];
    struct watch launcher_watch;
    struct mps_rules mps_rules; /* of the launcher, since the daemon's start */
    char *mps_program;          /* in mps_rules; NULL: none */
    struct privileges privileges;
    struct watch signals;
    struct clients clients;
    struct accounts accounts;

    struct list jobs;
    size_t job_count;
    struct job *spare_jobs; /* linked by by_id.next */
    struct {
        VECTOR_OF(struct job *);
    } job_chunks;
    size_t lease_count; /* jobs that have devices */
    size_t inner_count; /* jobs within other leases */
    struct id_map by_id;
    struct id_map by_lease;
    struct id_map by_token;
    struct id_map requests; /* cached ones, by the hashes of their keys */
    size_t request_count;
    struct list unused_requests; /* longest unused first */
    size_t unused_request_count;
    struct list watchers;
    struct list deferred_claims; /* messages */
    struct list early_messages;  /* messages that wait for the searches of ended leases */
    struct timer early_timer;
    struct list adoptions; /* claims for processes that are being described */
    struct list looks;     /* ended leases whose processes are searched for, oldest first */
    uint64_t look_count;   /* searches that have begun */
    bool is_resuming;      /* an early message is being handled */
    bool has_looked;       /* a search has ended since the early messages were last checked */
    struct ended_job_ring ended[ENDED_RINGS];

    struct {
        VECTOR_OF(struct pending_event);
    } pending_events;
    bool changed;          /* tests of requests must be repeated */
    bool lost;             /* memory ran out for an event: the daemon must restart */
    bool is_launcher_lost; /* likewise */

    struct problem_list problems; /* of this pool, shown by status */
    char *journal_path;
    struct journal_file journal;
    struct text record; /* the journal record in work */
    struct text key;    /* the key of the request in work */
    bool journaling;
    bool is_restoring; /* the first report is being applied; no grants yet */
    size_t part_count; /* of pool_init() */

    struct device_drain *drains; /* by slot */
    unsigned char *handovers;    /* by slot: the reasons why it is not granted yet */
    bool unasked;                /* one of the reasons is a report that was not requested yet */
    struct lost_leases *lost_leases;
    struct squatters *squatters;
    struct runner *runner;
    struct check *checks; /* by slot */
    struct mps *mps;
    struct mps_search *mps_searches; /* by slot */
    struct notify_program *notify_program;
    struct lease_warnings *lease_warnings;
    struct followers *followers;
    struct ended_leases *ended_leases;
    struct pool_counts counts;
    struct recorder_process *recorder_process;
    struct connection *recorder_connection; /* NULL: none */
    struct probe_poll *probe_poll;          /* NULL: the devices are an inventory's */
    struct device_locks *device_locks;
    struct reader_pool *readers;
    struct spared_processes spared;
    struct foreign_processes foreign;
    struct list late_leases; /* leases that are over, but may have left processes */

    struct timer engine_timer;
    struct timer idle_timer;
    struct timer watchdog_timer;
    int64_t watchdog_interval;   /* of signs of life for the supervisor; 0: none */
    int watchdog_socket;         /* -1: none */
    struct timer restore_timer;  /* the deadline for clients to reconnect */
    struct timer identity_timer; /* asks again about restored holders */
    struct timer journal_timer;  /* retries a failed write */
    int64_t next_checkpoint;     /* after a failed one; in the loop's time */
    struct timer test_timer;     /* the next deadline of a test */
    int64_t tests_again;         /* in the loop's time: no test is repeated before */
};

/* A part of the pool. The finish functions also free a part that could not be initialised. */
struct pool_part {
    int (*init)(struct pool *pool, struct berth_error *error); /* NULL: there is nothing to do */
    void (*finish)(struct pool *pool);                         /* likewise */
};

/* Initialises parts in their order. *ret_count counts them, with the one that failed: the caller
 * must finish so many parts.
 */
int pool_init_parts(struct pool *pool, const struct pool_part *part, size_t count,
                    size_t *ret_count, struct berth_error *error);
/* Finishes parts in reverse order. */
void pool_finish_parts(struct pool *pool, const struct pool_part *part, size_t count);

/* Initialises the coordinator's parts, except those that talk to other programs: the probe, the
 * device locks and the recorder. Needs the settings, the loop, the log, the clients and the engine.
 * Fails as its parts do; the caller must call pool_finish() then, too. */
int pool_init(struct pool *pool, struct berth_error *error);
void pool_finish(struct pool *pool);

/* Returns the pool of a client's connection. */
static inline struct pool *pool_of(const struct connection *connection)
{
    return container_of(connection->clients, struct pool, clients);
}

#endif
