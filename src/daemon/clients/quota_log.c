/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/clients.h"
#include "daemon/clients/quota.h"
#include "daemon/clients/quota_internal.h"

/* The lines of the log about one user: this number at once, then one per LINE_TIME. A longer line
 * counts as several, so that this bounds bytes. */
#define LINE_TIME           DURATION_SECOND
#define LINES_AT_ONCE       50
#define LEASE_LINES_AT_ONCE 500

/* The pause between two lines about lines that were left out. */
#define LEFT_OUT_PERIOD (10 * DURATION_SECOND)

void quota_log_left_out(struct quota *user)
{
    const struct clients_settings *settings = &user->clients->settings;

    if (user->lines_left_out == 0)
        return;
    user->told_left_out_at = loop_now(settings->loop);
    log_line(settings->log, pool_clock_now(settings->clock), "left_out", "uid=%u lines=%zu",
             (unsigned)user->by_uid.id, user->lines_left_out);
    user->lines_left_out = 0;
}

int64_t quota_log_review(struct quota *user)
{
    int64_t now = loop_now(user->clients->settings.loop);

    if (user->told_left_out_at == 0 || now - user->told_left_out_at >= LEFT_OUT_PERIOD)
        quota_log_left_out(user);
    return user->lines_left_out == 0 ? LOOP_NEVER : user->told_left_out_at + LEFT_OUT_PERIOD;
}

/* `at_once`: the number of lines that may come at once. */
static bool may_log(struct quota *user, struct rate_limit *lines, int64_t at_once)
{
    int64_t now = loop_now(user->clients->settings.loop);

    if (rate_limit_ready_at(lines, at_once * LINE_TIME) >= now) {
        user->lines_left_out++;
        quota_review_later(user);
        return false;
    }
    rate_limit_take(lines, now, LINE_TIME);
    return true;
}

bool quota_may_log(struct quota *user)
{
    return user == NULL || may_log(user, &user->lines, LINES_AT_ONCE);
}

bool quota_may_log_lease(struct quota *user)
{
    return user == NULL || may_log(user, &user->lease_lines, LEASE_LINES_AT_ONCE);
}

bool quota_may_log_user(struct clients *clients, uint32_t uid)
{
    struct quota *user;
    bool may;

    if (quota_open(clients, uid, &user) < 0)
        return true;
    may = quota_may_log_lease(user);
    quota_close(user);
    return may;
}

void quota_charge_line(struct quota *user, size_t bytes)
{
    if (user != NULL && bytes > QUOTA_LINE_BYTES)
        rate_limit_take(&user->lease_lines, loop_now(user->clients->settings.loop),
                        (int64_t)((bytes - 1) / QUOTA_LINE_BYTES) * LINE_TIME);
}
