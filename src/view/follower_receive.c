/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles the daemon's messages to a follower.
 */
#include <string.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "view/follower_internal.h"

/* A position after every claim. */
#define QUEUE_END UINT32_MAX

static int handle_pool(struct follower *follower, struct wire_message *message,
                       struct berth_error *error)
{
    int code =
        pool_view_check_inventory(follower->address.inventory, message->about.inventory, error);

    follower->hello_number = 0;
    if (code < 0)
        return code;
    pool_info_finish_about(&follower->view.about);
    follower->view.about = message->about;
    message->about = (struct pool_about){0};
    return 0;
}

uint32_t follower_sections_of_kinds(uint32_t kinds)
{
    uint32_t sections = 0;

    if ((kinds & (WIRE_NEWS_HELLO | WIRE_NEWS_LEASE)) != 0)
        return ALL_SECTIONS;
    if ((kinds & WIRE_NEWS_LOAD) != 0)
        sections |= SECTION_BIT(WIRE_SECTION_DEVICES);
    if ((kinds & WIRE_NEWS_QUEUE) != 0)
        sections |= SECTION_BIT(WIRE_SECTION_QUEUE);
    return sections;
}

static int take_ended_leases(struct follower *follower, struct wire_message *message,
                             struct berth_error *error)
{
    struct ended_lease *ended;

    if (!follower->settings.keeps_ended)
        return 0;
    if (vector_reserve(&follower->ended, follower->ended.count + message->ended.count) < 0)
        return error_set_memory(error);
    vector_for_each (ended, &message->ended)
        *vector_append(&follower->ended) = *ended;
    message->ended.count = 0;
    follower->lost += message->lost;
    return 0;
}

static void copy_tally(struct follower *follower, const struct pool_tally *tally)
{
    if (tally == NULL)
        return;
    follower->tally = *tally;
    follower->tally.waited = &follower->waited;
    follower->tally.held = &follower->held;
    follower->waited = (struct duration_histogram){0};
    follower->held = (struct duration_histogram){0};
    if (tally->waited != NULL)
        follower->waited = *tally->waited;
    if (tally->held != NULL)
        follower->held = *tally->held;
}

static int handle_news(struct follower *follower, struct wire_message *message,
                       struct berth_error *error)
{
    uint32_t kinds = message->kinds & WIRE_NEWS_ALL;
    int code = take_ended_leases(follower, message, error);

    if (code < 0)
        return code;
    /* A new epoch means another daemon, so everything may have changed. */
    if (message->epoch != follower->epoch)
        kinds |= WIRE_NEWS_HELLO;
    copy_tally(follower, message->tally);
    follower->epoch = message->epoch;
    follower->mark = message->after;
    follower->news_count++;
    follower->ended_count = message->id;
    follower->due_sections |=
        follower_sections_of_kinds(kinds) & follower_wanted_sections(follower);
    follower->pending_kinds |= kinds;
    if (!follower->has_view)
        follower->due_sections |= follower_wanted_sections(follower);
    code = follower_start_snapshot(follower, error);
    return code < 0 ? code : follower_subscribe(follower, error);
}

/* Replaces the items of a section, if the snapshot has that section. */
#define REPLACE_SECTION(follower, section, member)                                            \
    do {                                                                                      \
        if (((follower)->snapshot_sections & SECTION_BIT(section)) == 0)                      \
            break;                                                                            \
        swap_vectors(&(follower)->view.snapshot.member, &(follower)->partial.snapshot.member, \
                     sizeof((follower)->view.snapshot.member));                               \
    } while (false)

static void swap_vectors(void *one, void *other, size_t size)
{
    unsigned char kept[64];

    memcpy(kept, one, size);
    memcpy(one, other, size);
    memcpy(other, kept, size);
}

static int complete_snapshot(struct follower *follower, struct berth_error *error)
{
    struct pool_snapshot *snapshot = &follower->view.snapshot;
    const struct pool_snapshot *partial = &follower->partial.snapshot;

    snapshot->capacity = partial->capacity;
    snapshot->pending = partial->pending;
    snapshot->time = partial->time;
    REPLACE_SECTION(follower, WIRE_SECTION_DEVICES, slots);
    REPLACE_SECTION(follower, WIRE_SECTION_LEASES, leases);
    REPLACE_SECTION(follower, WIRE_SECTION_QUEUE, claims);
    swap_vectors(&snapshot->problems, &follower->partial.snapshot.problems,
                 sizeof(snapshot->problems));
    pool_view_finish(&follower->partial);
    follower->seen_at = clock_now();
    follower->snapshot_duration = follower->seen_at - follower->snapshot_started_at;
    follower->snapshot_sections = 0;
    follower->seen = follower->snapshots_started;
    follower->has_view = true;
    vector_finish(&follower->view.uses);
    return pool_view_index(&follower->view, error);
}

/* Adds a page to the snapshot. Returns the kinds of news when the snapshot is complete, 0, or an
 * error. */
static int handle_page(struct follower *follower, struct wire_message *page,
                       struct berth_error *error)
{
    size_t max = follower->whole ? 0 : follower->settings.claims_max;
    uint32_t section = page->section;
    uint64_t after = page->after;
    int news;
    int code;

    copy_tally(follower, page->tally);
    news = pool_view_add_page(&follower->partial, &page->snapshot, error);
    if (news == 0)
        news = pool_view_fetch_advance(page, &follower->position, error);
    follower->snapshot_number = 0;
    if (news < 0)
        return news;
    if (news > 0) {
        /* The last page has the problems, so it is always requested. */
        if (section == WIRE_SECTION_QUEUE && max != 0 && after < QUEUE_END &&
            follower->partial.snapshot.claims.count >= max)
            after = QUEUE_END;
        return follower_request_page(follower, section, after, error);
    }
    code = complete_snapshot(follower, error);
    if (code < 0)
        return code;
    news = (int)follower->snapshot_kinds;
    follower->snapshot_kinds = 0;
    code = follower_start_snapshot(follower, error);
    return code < 0 ? code : news;
}

static int handle_refusal(const struct wire_message *message, struct berth_error *error)
{
    struct berth_error refused = BERTH_ERROR_INIT;

    session_refusal(message, &refused);
    return error_set(error, refused.code, "cannot follow the pool: %s", refused.message);
}

int follower_handle_message(struct follower *follower, struct wire_message *message,
                            struct berth_error *error)
{
    uint64_t number = message->number;

    if (number == 0 || (number != follower->hello_number && number != follower->subscribe_number &&
                        number != follower->snapshot_number))
        return 0;
    if (message->type == WIRE_REFUSED)
        return handle_refusal(message, error);
    if (message->type == WIRE_POOL && number == follower->hello_number)
        return handle_pool(follower, message, error);
    if (message->type == WIRE_NEWS && number == follower->subscribe_number)
        return handle_news(follower, message, error);
    if (message->type == WIRE_PAGE && number == follower->snapshot_number)
        return handle_page(follower, message, error);
    return error_set(error, BERTH_ERROR_SYNTAX, "cannot follow the pool: unexpected message '%s'",
                     wire_type_name(message->type));
}
