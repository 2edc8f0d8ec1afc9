/* SPDX-License-Identifier: Apache-2.0
 *
 * MPS control daemons: one for each device that is shared by MPS, as long as the device has
 * tenants. It runs as the tenants' user, without any right of the daemon's. It outlives the daemon,
 * because its clients would die with it.
 *
 * This part starts and ends them, and starts them again when they die. Its owner knows the tenants
 * and finds processes: it answers and is notified by callbacks.
 *
 * Nothing here blocks. All functions belong to the loop's thread.
 */
#ifndef DAEMON_MPS_MPS_H
#define DAEMON_MPS_MPS_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text/quantity.h"
#include "daemon/core/log.h"
#include "daemon/core/loop.h"
#include "daemon/core/pool_clock.h"
#include "daemon/mps/mps_site.h"

struct device;
struct launcher;
struct mps;
struct runner;
struct text;

/* The name of the directory beside the socket that has a directory for each user
 * (model/mps_directories.h). */
#define MPS_BASE "mps"

/* The variable of the daemon's environment with the path of the control program. It goes before the
 * configuration's. */
#define MPS_CONTROL_VARIABLE "BERTH_MPS_CONTROL"

/* The time that a control daemon has until it answers, and the minimum and maximum of a configured
 * time. */
#define MPS_START_TIMEOUT     (10 * DURATION_SECOND)
#define MPS_START_TIMEOUT_MIN (DURATION_SECOND / 100)
#define MPS_START_TIMEOUT_MAX (10 * DURATION_MINUTE)

/* A control daemon as a later daemon must know it. The texts are borrowed. */
struct mps_record {
    struct user_identity user;
    pid_t pid;        /* 0: it will be started again */
    uint64_t started; /* in clock ticks since boot; 0: unknown */
    const char *pipe;
    const char *log;
};

/* Callbacks must not call mps_destroy(). Those marked "from the loop" are never called from within
 * a function of this header. */
struct mps_events {
    void *context;

    /* Returns the device, valid for the moment; NULL: the pool does not have it any more. */
    const struct device *(*device)(void *context, uint32_t slot);
    /* Returns the path of the control program; NULL: it is in one of the standard directories. */
    const char *(*program)(void *context);
    /* Returns whether a lease needs the slot's control daemon. */
    bool (*has_tenants)(void *context, uint32_t slot);
    /* Returns whether the holder of one of these leases waits for it. */
    bool (*is_awaited)(void *context, uint32_t slot);
    /* Makes the site that these leases need, which the callee finishes. Returns false if there are
     * none, or no memory. */
    bool (*find_site)(void *context, uint32_t slot, struct mps_site *ret_site);

    /* It answers: the waiting holders can be notified. From the loop. */
    void (*answers)(void *context, uint32_t slot);
    /* It cannot be started: the waiting claims must be refused. From the loop. */
    void (*failed)(void *context, uint32_t slot, const char *why);
    /* It must end: the device must not be granted before `gone`. */
    void (*leaving)(void *context, uint32_t slot);
    /* None of its processes is left. */
    void (*gone)(void *context, uint32_t slot);
    /* Writes its record to the journal; NULL: there is none any more. Returns false if the journal
     * is behind, so that the next daemon may not know the record. */
    bool (*keep)(void *context, uint32_t slot, const struct mps_record *record);
    /* Returns whether the log may have a line about the user's control daemon: users can make them
     * start and end as often as they like. */
    bool (*may_log)(void *context, uint32_t uid);
    /* A callback from the loop is over: its changes can be handled. */
    void (*changed)(void *context);

    /* Searches for its processes: those that carry its mark (mps_mark()) and those that descend
     * from `root` (0: unknown). mps_found() reports the result. Returns false without memory. */
    bool (*search)(void *context, uint32_t slot, uint32_t uid, pid_t root);
    /* Signals the processes that were found, or will be. */
    void (*signal)(void *context, uint32_t slot, int number);
    /* Asks when the process has started; mps_identified() reports the answer. */
    void (*identify)(void *context, uint32_t slot, uint32_t uid, pid_t pid);
    /* Gives up the search and the question of the slot, if there are any. */
    void (*forget)(void *context, uint32_t slot);
};

struct mps_settings {
    struct loop *loop;
    struct log *log;
    const struct pool_clock *clock;
    struct runner *runner;
    struct launcher *launcher;
    const char *socket; /* of the pool; absolute path */
    uint32_t slots_max;
    int64_t start_timeout;
    struct mps_events events;
};

/* The pointers of the settings must stay valid. Fails with BERTH_ERROR_MEMORY. */
int mps_create(struct mps **ret_mps, const struct mps_settings *settings,
               struct berth_error *error);
/* Leaves running control daemons alone. Accepts NULL. */
void mps_destroy(struct mps *mps);

/* Appends the directory for all users of the pool with this socket. */
void mps_append_base(const char *socket, struct text *out);
/* Returns this pool's. */
const char *mps_base(const struct mps *mps);
/* Returns the id in the mark of the slot's control daemon (model/lease_mark.h). No lease has it. */
uint64_t mps_mark(uint32_t slot);

/* Returns whether the control program can be used. Fails with BERTH_ERROR_IMPOSSIBLE. */
int mps_check(struct mps *mps, struct berth_error *error);

enum mps_readiness {
    MPS_ANSWERS,
    MPS_AWAITED, /* `answers` or `failed` will be called */
    MPS_BUSY,    /* it is another site's */
};

/* A lease needs a control daemon on the slot: starts it, if there is none. May take the site's
 * texts; the caller finishes the site. */
enum mps_readiness mps_need(struct mps *mps, uint32_t slot, struct mps_site *site);

/* The last lease that needs the control daemon ends: stops it. */
void mps_stop(struct mps *mps, uint32_t slot);

/* Returns whether the slot has a control daemon, also one that is just starting or ending. */
bool mps_is_present(const struct mps *mps, uint32_t slot);
/* Returns whether the slot's control daemon is ending, because it must or by itself. */
bool mps_is_ending(const struct mps *mps, uint32_t slot);
/* Returns whether any slot has one. */
bool mps_is_busy(const struct mps *mps);

/* The search that the callback began has ended, and none (`is_gone`) or some were found; or all
 * that were found have ended (`is_gone`). */
void mps_found(struct mps *mps, uint32_t slot, bool is_gone);
/* The process of the question started at this time, in clock ticks since boot; 0: it is gone. */
void mps_identified(struct mps *mps, uint32_t slot, uint64_t started);

/* Takes a record of the journal; NULL: there is none any more. Copies the texts. Fails with
 * BERTH_ERROR_MEMORY. */
int mps_restore(struct mps *mps, uint32_t slot, const struct mps_record *record);
/* Watches the restored control daemons, once the whole journal was read. */
void mps_resume(struct mps *mps);
/* Fills in the record of the slot. Returns false if there is none. */
bool mps_find_record(const struct mps *mps, uint32_t slot, struct mps_record *ret_record);

#endif
