/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's state and its parts. One thread, one loop: a message or the end of a process comes
 * in, the engine decides, what it decided is written down, and only then told.
 *
 *     connection.c  clients: packets in and out
 *     users.c       what each user has of the daemon, and may have
 *     claims.c      messages that ask for devices
 *     leases.c      messages about leases and claims that are there
 *     look.c        messages that only look
 *     rights.c      who may do what
 *     asked.c       requests as the engine knows them, shared by all who ask the same
 *     jobs.c        what is known of each claim and lease beside the engine
 *     settle.c      what the engine's events lead to
 *     ending.c      how a lease is taken back
 *     helpers.c     programs that are run from the loop
 *     checks.c      those for devices, before and after leases
 *     mps.c         control daemons of MPS (mps_control.h lists its files)
 *     persona.c     children that become a user
 *     notices.c     what people should know in time
 *     news.c        what has changed, for those who follow
 *     past.c        leases that are over, for those who follow
 *     recorder.c    the program that writes them down; history_file.c says where
 *     remains.c     processes that a lease left behind
 *     mark.c        what a process says of the lease that it is of
 *     strangers.c   processes that are of no lease
 *     names.c       kernel-wide names of devices, between two pools
 *     postponed.c   messages that wait for an answer from elsewhere
 *     handover.c    from one lease of a device to the next
 *     drains.c      devices out of service
 *     processes.c   whose the processes on devices are
 *     squatters.c   processes on devices without a lease
 *     adoption.c    leases for processes that run already
 *     keep.c        the journal: writing, making it anew
 *     restore.c     the journal: reading
 *     sources.c     where devices and rules come from
 *     rules.c       how the rules reach the engine
 *     hardware.c    the probe, when it is asked and what it answers
 *     devices.c     what a look at the hardware changes
 *     listener.c    the socket and the files beside it
 *     privileges.c  as whom it runs, and what it may do to the processes of others
 */
#ifndef DAEMON_POOL_H
#define DAEMON_POOL_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id_map.h"
#include "base/list.h"
#include "base/text/text.h"
#include "base/vector.h"
#include "daemon/journal_file.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/strangers.h"
#include "engine/engine.h"
#include "engine/event.h"
#include "spec/configuration/configuration.h"
#include "wire/wire.h"

struct pool;
struct job;

/* ---- Clients ---- */

struct connection {
    struct watch watch;
    struct pool *pool;
    struct list_link in_pool;
    struct id_link by_pid; /* in pool->clients, unless another of the process is */
    bool is_by_pid;
    pid_t pid;
    uint32_t uid;
    uint32_t gid;
    uint32_t *groups; /* gid and the others; NULL: only gid, or not asked for yet */
    size_t group_count;
    bool groups_known;
    uint64_t started;           /* when its process began; 0: not known yet */
    struct user *user;          /* NULL: nothing holds it back */
    bool is_recorder;           /* it is our own recorder's, and no client */
    struct list_link in_queue;  /* of its user, while it waits for its turn to be read from */
    struct list_link in_silent; /* until it has said something */
    int64_t silent_since;
    struct list jobs;     /* that it is told about */
    struct list watchers; /* what it waits to be told */
    size_t watcher_count;
    int64_t told_news_at; /* in the loop's time; 0: not yet */
    size_t job_count;
    struct text out;            /* packets that found no room, each after its length (u32) */
    size_t sent;                /* of those */
    size_t unread;              /* the rest */
    bool wants_out;             /* waits to be writable */
    bool closing;               /* to be closed at the end of this turn */
    struct list_link in_doomed; /* while it is */
};

/* All who have something of the daemon, but for root and the pool's owner. */
struct users {
    struct id_map by_uid;
    size_t count;
    size_t connections; /* of all */
    size_t connections_max;
    uint64_t turn;        /* of the loop */
    struct list busy;     /* those with connections that wait for their turn */
    struct timer resume;  /* when the next turn comes */
    struct list silent;   /* connections that have said nothing yet, oldest first */
    struct timer silence; /* when the first has been silent for too long */
    struct list loose;    /* those to be looked at again */
    struct timer loose_timer;
};

/* What somebody who follows the pool knows already, and wants to know. */
struct following {
    bool knows;       /* something of this daemon */
    uint64_t after;   /* the mark up to which it does */
    uint64_t ended;   /* how many leases had ended then */
    uint32_t kinds;   /* bits of enum wire_news */
    int64_t interval; /* from one answer to the next, at least */
};

/* Somebody who wants to know when a claim or lease is over, when a request would be granted, or
 * whatever happens. */
struct watcher {
    struct list_link in_pool;
    struct list_link in_connection;
    struct list_link in_followers; /* of those that follow */
    struct following follows;
    struct connection *connection;
    uint64_t number;
    uint64_t id;                   /* of WIRE_WATCH; 0: it tests */
    struct asked *asked;           /* of WIRE_TEST */
    size_t bytes;                  /* that it asked with */
    struct wire_message *adopting; /* a claim for a process that a lease is in the way of */
    int64_t deadline;              /* in the pool's time; TIME_NEVER */
    int64_t wait;                  /* how long before it; 0: for ever */
};

/* ---- Claims and leases ---- */

/* A request as the engine knows it, shared by all who ask the same. */
struct asked {
    struct id_link by_hash;
    struct list_link in_spare; /* while nobody uses it */
    struct engine_request *request;
    struct text key; /* what was asked, by whom, in bytes */
    size_t users;
};

/* Who holds or waits; shared by the jobs of one connection that are within the same lease and wait
 * as long. */
struct holder {
    size_t users;
    struct user *user; /* NULL: nothing holds it back */
    uint64_t parent;   /* the id of the lease that it is within; 0: none */
    uint32_t uid;
    pid_t pid;
    uint64_t started; /* 0: unknown */
    int64_t wait;     /* how long each of them waits at most; TIME_NEVER: for ever */
    char *command;    /* NULL: unknown */
};

enum job_state {
    JOB_WAITING,
    JOB_HELD,
    JOB_ENDING,   /* asked to give back */
    JOB_DRAINING, /* its holder is gone, processes of it are left */
};

/* The exit code of a command that nobody has reported. */
enum { NO_EXIT_CODE = -1 };

/* A claim, and then its lease. There may be very many that wait: what only leases need is in the
 * guard. */
struct job {
    struct id_link by_id;    /* its id for people, the claim's */
    struct id_link by_lease; /* its id is 0 while it waits */
    struct id_link by_token;
    struct list_link in_pool; /* oldest first */
    struct list_link in_connection;
    struct connection *connection; /* NULL: nobody is there to be told */
    uint64_t number;               /* of the message that claimed */
    uint64_t token_low;
    struct holder *holder;
    struct guard *guard; /* of the holder's process and of ending; NULL: none needed */
    int64_t since;
    int16_t exit_code; /* that its holder reported or ended with, or NO_EXIT_CODE */
    enum job_state state : 8;
    enum lease_hold hold : 8;
    enum lease_end end : 8; /* why it is being ended; 0: it is not */
    bool restored : 1;      /* from the journal, and its client has not come back */
    bool adopted : 1;       /* its process was there before it */
    bool unprepared : 1;    /* its devices are to be checked before its holder is told of them */
    bool waits_for_mps : 1; /* a control daemon of it does not answer yet */
    bool waits : 1;         /* and is counted among what its user waits for */
    uint32_t kib : 8;       /* that it is counted with */
};

/* What only some jobs need: the process that holds it, the end that comes, what is left of it. */
struct guard {
    struct job *job;
    struct pool *pool;
    struct watch process; /* pidfd; -1: none */
    struct timer force;
    int64_t force_at; /* in the pool's time */
    struct remains *remains;
    struct list_link in_warnings; /* while its time limit is to be warned of */
    int64_t warn_at;              /* in the pool's time */
    int64_t told_limit;           /* the time limit that was told of last */
    int64_t used_at;              /* when it was last seen to be used; 0: nobody looked yet */
    bool is_idle;                 /* it was not at the last look */
    bool idle_warned;
    int64_t judged_at;    /* when it was looked at last; 0: not yet */
    uint64_t judged_time; /* for which it is known whether it was used */
    uint64_t idle_time;   /* of that: when it was not */
    char *refusal;        /* why there will be no lease, when its end does not say so; NULL */
};

/* What is known of one that is over. */
struct ended {
    uint64_t id;
    uint32_t uid;
    enum lease_end end;
    struct optional_number exit_code;
};

/* How much is remembered of what is over, and what one connection may ask for at once. */
enum { ENDED_KEPT = 1024, ENDED_RINGS = 16, WATCHERS_MAX = 1024, JOBS_MAX = 65536 };

/* Those of some of the users: one who ends very many would push out everybody else's. */
struct ended_ring {
    struct ended items[ENDED_KEPT];
    size_t count; /* that there were in all */
};

/* ---- What the engine said, until it is dealt with ---- */

struct happening {
    enum event_type type;
    uint64_t claim;
    uint64_t lease;
    enum refusal reason;
    int64_t expires;
};

struct pool_settings {
    const char *socket;        /* path */
    const char *inventory;     /* absolute; NULL: the hardware */
    const char *configuration; /* a file; NULL: the default place, which may have none */
    bool own;                  /* the user's own: ends when idle */
    int64_t idle;              /* nanoseconds */
    int listener;              /* a socket that listens already; -1: none */
    bool owns_path;            /* that socket's path is ours to remove, not its maker's */
    int log;                   /* a descriptor */
    const char *log_path;      /* the file that it is; NULL: none of ours */
    int ready;                 /* a descriptor that is told "ready" or why not; -1: none */
};

struct pool {
    struct pool_settings settings;
    struct loop loop;
    struct log log;
    int64_t clock_offset;    /* from CLOCK_BOOTTIME to the pool's time */
    uint32_t owner;          /* uid */
    pid_t pid;               /* our own */
    char *name;              /* of this count of ids */
    uint64_t inventory_key;  /* of the file's path */
    uint64_t inventory_hash; /* of what it says */
    struct engine *engine;
    uint32_t vendors;
    struct configuration rules; /* as the engine was told them */
    struct number_list limited; /* uids that have the limit of each user */

    struct watch listener;
    struct watch signals;
    struct list connections;
    size_t connection_count;
    struct users users;
    struct list doomed;    /* connections that are to be closed */
    bool has_granted;      /* a process was, in this turn */
    bool is_full;          /* no descriptor was left for another connection */
    struct id_map clients; /* connections by pid */
    unsigned char *packet; /* room for the longest */
    size_t packet_length;  /* of the one being dealt with */
    struct text answer;    /* the packet being written */

    struct list jobs;
    size_t job_count;
    struct job *spare_jobs; /* linked by by_id.next */
    struct {
        VECTOR_OF(struct job *);
    } job_chunks;
    size_t lease_count; /* of those that have devices */
    size_t inner_count; /* of those within others */
    struct id_map by_id;
    struct id_map by_lease;
    struct id_map by_token;
    struct id_map asked;
    struct list spare_asked; /* longest unused first */
    size_t spare_asked_count;
    struct list watchers;
    struct list postponed; /* messages */
    struct ended_ring ended[ENDED_RINGS];

    struct {
        VECTOR_OF(struct happening);
    } happenings;
    bool changed; /* something that a test may wait for */
    bool lost;    /* memory ran out where an event was to be kept: start anew */

    char *journal_path;
    struct journal_file journal;
    struct text record; /* being written */
    struct text key;    /* of a request being looked for */
    bool journaling;

    struct drain *drains;     /* by slot */
    unsigned char *handovers; /* by slot: what is missing until it is granted on */
    bool unasked;             /* one of them is a look that nobody asked for */
    struct squatters *squatters;
    struct helpers *helpers;
    struct check *checks; /* by slot */
    struct mps *mps;
    struct notices *notices;
    struct news *news;
    struct past *past;
    struct recorder *recorder;
    char *history_path;        /* the file of past leases; NULL: none is kept */
    struct hardware *hardware; /* NULL: the devices are an inventory's */
    struct names *names;
    struct strangers strangers;

    struct timer engine_timer;
    struct timer idle_timer;
    struct timer restore_timer; /* clients that have not come back by then */
    struct timer journal_timer; /* tries again */
    struct timer test_timer;    /* deadlines of tests */
    int64_t tests_again;        /* in the loop's time: tests are not looked at before */
    int lock;
    int directory;       /* of the socket, kept from cleaners; -1 */
    int outer_directory; /* around that one; -1 */
    bool owns_path;      /* the socket's is ours to remove */
    ino_t socket_inode;
};

/* The pool's time: nanoseconds since 1970 UTC, never disturbed by a clock that is set. */
int64_t pool_now(const struct pool *pool);
/* That time as the loop's. */
int64_t pool_loop_time(const struct pool *pool, int64_t time);

/* Runs a daemon until it is told to end. Returns 0 or a negative code. */
int pool_run(const struct pool_settings *settings, struct berth_error *error);

#endif
