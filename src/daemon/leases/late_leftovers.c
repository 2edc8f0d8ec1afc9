/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/leases/late_leftovers.h"

#include <signal.h>
#include <stdlib.h>

#include "base/list.h"
#include "daemon/clients/quota.h"
#include "daemon/leases/pool.h"
#include "daemon/processes/leftovers.h"

/* The maximum number of leases of one account whose processes are watched. */
enum { LATE_OF_ACCOUNT_MAX = 8 };

struct late_lease {
    struct list_link in_pool;
    struct pool *pool;
    struct leftovers *leftovers;
    struct timer force;
    uint32_t account;
    struct quota *quota; /* NULL: no limits */
};

void late_leftovers_init(struct pool *pool)
{
    list_init(&pool->late_leases);
}

static void forget_lease(struct late_lease *late)
{
    loop_set_timer(&late->pool->loop, &late->force, LOOP_NEVER);
    list_remove(&late->in_pool);
    leftovers_free(late->leftovers);
    quota_close(late->quota);
    free(late);
}

void late_leftovers_finish(struct pool *pool)
{
    list_for_each (link, &pool->late_leases)
        forget_lease(container_of(link, struct late_lease, in_pool));
}

static void ignore_look(void *context, bool is_gone, struct optional_number exit_code)
{
    (void)context;
    (void)is_gone;
    (void)exit_code;
}

static void all_are_gone(void *context)
{
    struct late_lease *late = context;

    if (leftovers_count(late->leftovers) == 0)
        forget_lease(late);
}

static void charge_account(void *context, int64_t time)
{
    const struct late_lease *late = context;

    if (late->quota != NULL)
        quota_charge_time(late->quota, time);
}

static void kill_processes(struct timer *timer)
{
    leftovers_signal(container_of(timer, struct late_lease, force)->leftovers, SIGKILL);
}

static void forget_oldest(struct pool *pool, uint32_t account)
{
    struct late_lease *oldest = NULL;
    int count = 0;

    list_for_each (link, &pool->late_leases) {
        struct late_lease *late = container_of(link, struct late_lease, in_pool);

        if (late->account != account)
            continue;
        if (oldest == NULL)
            oldest = late;
        count++;
    }
    if (count >= LATE_OF_ACCOUNT_MAX)
        forget_lease(oldest);
}

void late_leftovers_add(struct pool *pool, struct leftovers *leftovers, uint32_t account)
{
    struct late_lease *late = calloc(1, sizeof(*late));

    if (late == NULL) {
        leftovers_free(leftovers);
        return;
    }
    forget_oldest(pool, account);
    *late = (struct late_lease){
        .pool = pool,
        .leftovers = leftovers,
        .force.fire = kill_processes,
        .account = account,
    };
    list_append(&pool->late_leases, &late->in_pool);
    if (quota_open(&pool->clients, account, &late->quota) < 0)
        late->quota = NULL;
    leftovers_set_events(leftovers, &(struct leftovers_events){
                                        .looked = ignore_look,
                                        .gone = all_are_gone,
                                        .spent = charge_account,
                                        .context = late,
                                    });
    leftovers_signal(leftovers, SIGTERM);
    loop_set_timer(&pool->loop, &late->force, loop_now(&pool->loop) + pool->rules.grace);
}
