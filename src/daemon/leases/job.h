/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's facts about each claim and lease: the user, the process and the connection. The
 * engine has the rest.
 */
#ifndef DAEMON_LEASES_JOB_H
#define DAEMON_LEASES_JOB_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id_map.h"
#include "base/list.h"
#include "daemon/core/loop.h"
#include "wire/wire.h"

struct connection;
struct leftovers;
struct pool;
struct quota;

/* The process that holds a lease or waits for one. The jobs of one connection share it if they are
 * within the same lease and have the same maximum wait. */
struct holder {
    size_t users;
    struct quota *quota; /* NULL: no limits */
    uint64_t parent;     /* the id of the lease around it; 0: none */
    uint32_t uid;
    uint32_t account; /* the uid for limits and reports; job_new() sets it */
    pid_t pid;
    uint64_t started; /* in clock ticks since boot, from older journals; 0: unknown */
    uint64_t began;   /* the process's start, in ns of CLOCK_BOOTTIME; 0: unknown */
    bool is_asked;    /* a reader was asked for the start */
    int unanswered;   /* how often no reader answered the question about the holder */
    pid_t session;    /* of the process, as getsid() has it; 0: unknown */
    int64_t wait;     /* the maximum wait of each job; TIME_NEVER: none */
    char *command;    /* NULL: unknown */
};

enum job_state {
    JOB_WAITING,
    JOB_HELD,
    JOB_ENDING,   /* the holder was told to end */
    JOB_LOOKING,  /* the holder is gone; its processes are searched for */
    JOB_DRAINING, /* the holder is gone; some of its processes still run */
};

/* The exit code of a command is unknown. */
enum { NO_EXIT_CODE = -1 };

/* A claim, and then its lease. Very many may wait, so the facts that only leases need are in the
 * lease_watch. */
struct job {
    struct id_link by_id;    /* the claim's id, which users see */
    struct id_link by_lease; /* the id is 0 while the job waits */
    struct id_link by_token;
    struct list_link in_pool; /* oldest first */
    struct list_link in_connection;
    struct connection *connection; /* NULL: the client is not connected */
    uint64_t number;               /* of the claim's message */
    uint64_t token_low;
    struct holder *holder;
    struct lease_watch *guard; /* NULL: not needed yet */
    int64_t since;
    int16_t exit_code; /* of the holder, or NO_EXIT_CODE */
    enum job_state state : 8;
    enum lease_hold hold : 8;
    enum lease_end end : 8; /* why it ends; 0: it does not */
    bool restored : 1;      /* from the journal; its client has not reconnected */
    bool adopted : 1;       /* its process ran before the claim */
    bool unprepared : 1;    /* its devices must be prepared before its holder is notified */
    bool waits_for_mps : 1; /* one of its MPS control daemons does not answer yet */
    bool leaves_mps : 1;    /* it is over but for an MPS control daemon that is ending */
    bool waits : 1;         /* its user's quota counts it as waiting */
    uint32_t kib : 8;       /* the request's size in KiB that the quota counts */
};

/* The facts that only some jobs need: the watched process, its end, and the processes left. */
struct lease_watch {
    struct job *job;
    struct pool *pool;
    struct watch process; /* pidfd; -1: none */
    struct timer force;
    int64_t force_at;            /* in the pool's time */
    struct leftovers *leftovers; /* NULL: not searched yet */
    struct list_link in_looks;   /* while the job is JOB_LOOKING */
    uint64_t look_number;
    uint64_t release; /* the number of a RELEASE that is answered after the search; 0: none */
    struct timer release_timer;
    pid_t asker;                  /* the process that requested the end; 0: none */
    int ended_holder;             /* pidfd of the ended holder, for its exit code; -1: none */
    bool is_unconfirmed;          /* `process` may not be the holder, so it gets no signals */
    int held_signal;              /* sent once the holder is confirmed; 0: none */
    struct list_link in_warnings; /* until the warning of its time limit */
    int64_t warn_at;              /* in the pool's time */
    int64_t warned_limit;         /* the time limit of the last warning */
    int64_t used_at;              /* the last time its devices were used; 0: not checked yet */
    bool is_idle;                 /* its devices were unused at the last check */
    bool idle_warned;
    int64_t judged_at;    /* the time of the last check; 0: none */
    uint64_t judged_time; /* the time for which its use is known */
    uint64_t idle_time;   /* the part of judged_time when it was unused */
    char *container;      /* that began with the adopted process; NULL: unknown */
    char *refusal;        /* the reason of a refusal that `end` cannot express; NULL: none */
};

/* A job that has ended. */
struct ended_job {
    uint64_t id;
    uint32_t uid;
    enum lease_end end;
    struct optional_number exit_code;
};

/* Ended jobs that are remembered, and the limits of one connection. */
enum { ENDED_KEPT = 1024, ENDED_RINGS = 16, WATCHERS_MAX = 1024, JOBS_MAX = 65536 };

/* The ended jobs of some of the users. A user with very many ended jobs pushes out only those of
 * its ring. */
struct ended_job_ring {
    struct ended_job items[ENDED_KEPT];
    size_t count; /* of all that were added, the overwritten ones included */
};

/* Initialises the pool's maps and lists of jobs. Fails with BERTH_ERROR_MEMORY. */
int job_init_pool(struct pool *pool, struct berth_error *error);
/* Frees all jobs and unused requests. */
void job_finish_pool(struct pool *pool);

/* Creates a job of this connection (NULL: of no connected client), in no map yet. `holder` gets a
 * reference. Returns NULL without memory. */
struct job *job_new(struct pool *pool, struct connection *connection, struct holder *holder);

/* Adds the job to the maps. `lease` 0: it waits. */
void job_add(struct pool *pool, struct job *job, uint64_t id, uint64_t lease);
/* Turns a waiting job into a lease. */
void job_set_lease(struct pool *pool, struct job *job, uint64_t lease);
/* Turns a lease back into a waiting claim. */
void job_unset_lease(struct pool *pool, struct job *job);
/* Removes the job from all maps and lists, and frees it. */
void job_free(struct pool *pool, struct job *job);

/* Returns whether the holder is gone, and the devices are only kept until its processes are. */
static inline bool job_is_over(const struct job *job)
{
    return job->state == JOB_LOOKING || job->state == JOB_DRAINING;
}

/* Returns whether the job has devices, but its holder was not notified yet. */
static inline bool job_is_preparing(const struct job *job)
{
    return job->unprepared && job->by_lease.id != 0;
}

/* Find a job in one of the maps. Return NULL if there is none. */
struct job *job_of_id(const struct pool *pool, uint64_t id);
struct job *job_of_lease(const struct pool *pool, uint64_t lease);
struct job *job_of_token(const struct pool *pool, const uint64_t token[2]);

/* Assigns the job to a connection: its client has reconnected. */
void job_attach(struct job *job, struct connection *connection, uint64_t number);

/* Detaches the connection's jobs, which go on without a client. */
void job_detach_all(struct connection *connection);

/* Ends or keeps the jobs of a connection that is gone: claims are cancelled, and leases that are
 * held by the connection end. */
void job_lose_client(struct pool *pool, struct connection *connection);

/* Returns the job's lease_watch, creating it if needed. Returns NULL without memory. */
struct lease_watch *job_lease_watch(struct pool *pool, struct job *job);

/* Stores the container that began with the process of an adopted job. Without memory it stays
 * unknown. */
void job_keep_container(struct pool *pool, struct job *job, const char *container);

/* Creates a holder without a maximum wait, with one reference. Copies the command. Returns NULL
 * without memory. */
struct holder *job_holder_new(uint32_t uid, pid_t pid, uint64_t parent, const char *command);
/* Notes the session of the holder's process, which must still run. */
void job_holder_note_session(struct holder *holder);
/* Drops a reference, and frees the holder with the last one. NULL is fine. */
void job_holder_release(struct holder *holder);

/* Adds an ended job to the ring of its user, whose oldest entry it may replace. */
void job_remember_ended(struct pool *pool, const struct ended_job *ended);
/* Returns the ended job with this id, or NULL if it is unknown or was replaced. */
const struct ended_job *job_find_ended(const struct pool *pool, uint64_t id);

#endif
