/* SPDX-License-Identifier: Apache-2.0 */
#include "client/silence.h"

void silence_start(struct silence *silence, int64_t now)
{
    *silence = (struct silence){
        .quiet_since = now,
        .is_silent = silence->is_silent,
        .deadline = silence->deadline,
    };
}

void silence_add_request(struct silence *silence, int64_t now)
{
    if (silence->has_request)
        return;
    silence->has_request = true;
    silence->quiet_since = now;
}

bool silence_add_message(struct silence *silence, int64_t now)
{
    bool was_silent = silence->is_silent;

    *silence = (struct silence){.quiet_since = now, .deadline = silence->deadline};
    return was_silent;
}

void silence_add_ping(struct silence *silence, int64_t now, int64_t earliest)
{
    silence->pinged_at = now;
    silence->earliest = earliest;
}

static int64_t find_ping_time(const struct silence *silence)
{
    int64_t time = silence->quiet_since + SILENCE_PING_AFTER;

    /* After the deadline, a daemon that still answers is trusted to keep the limit itself. */
    if (silence->deadline > silence->quiet_since && silence->deadline < time)
        time = silence->deadline;
    return time;
}

static int64_t find_silent_time(const struct silence *silence)
{
    int64_t time = silence->pinged_at + SILENCE_TIMEOUT - SILENCE_PING_AFTER;

    return time > silence->earliest ? time : silence->earliest;
}

static int64_t find_expiry(const struct silence *silence)
{
    int64_t answer_due = silence->pinged_at + SILENCE_DEADLINE_MARGIN;

    if (silence->deadline == 0)
        return INT64_MAX;
    return silence->deadline > answer_due ? silence->deadline : answer_due;
}

enum silence_step silence_step(struct silence *silence, int64_t now)
{
    if (silence->pinged_at == 0)
        return now >= find_ping_time(silence) ? SILENCE_PING : SILENCE_WAIT;
    if (now >= find_expiry(silence))
        return SILENCE_EXPIRE;
    if (silence->is_silent || now < find_silent_time(silence))
        return SILENCE_WAIT;
    silence->is_silent = true;
    return SILENCE_BEGIN;
}

int64_t silence_next_time(const struct silence *silence)
{
    int64_t silent;
    int64_t expiry;

    if (silence->pinged_at == 0)
        return find_ping_time(silence);
    silent = silence->is_silent ? INT64_MAX : find_silent_time(silence);
    expiry = find_expiry(silence);
    return silent < expiry ? silent : expiry;
}
