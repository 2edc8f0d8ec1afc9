/* SPDX-License-Identifier: Apache-2.0
 *
 * Looks at a pool through a connection, page by page, also where the other side is no daemon of
 * ours.
 */
#include "support/views/pool_views.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/assert_error.h"
#include "view/pool_view_fetch.h"

/* The other side of a connection: a thread that answers each request by the rule. */
struct peer {
    int socket;
    pthread_t thread;
    /* Fills in an answer that already has the request's number. Returns false to hang up. */
    bool (*rule)(const struct wire_message *question, struct wire_message *answer);
};

static struct pool_address address = {.socket = (char *)"berth.sock"};

static bool answer_one(const struct peer *peer, const struct wire_message *question)
{
    struct wire_message answer = {.type = WIRE_PAGE, .number = question->number};
    struct text bytes = {0};
    bool go_on = peer->rule(question, &answer);

    if (question->type == WIRE_HELLO && answer.type == WIRE_PAGE) {
        answer.type = WIRE_POOL;
        answer.section = 0;
        answer.after = 0;
    }
    go_on = go_on && wire_encode(&answer, &bytes, NULL) == 0 &&
            send(peer->socket, bytes.bytes, bytes.length, MSG_NOSIGNAL) >= 0;
    text_finish(&bytes);
    wire_message_finish(&answer);
    return go_on;
}

static void *run_peer(void *context)
{
    struct peer *peer = context;
    static unsigned char in[WIRE_MESSAGE_MAX];
    bool go_on = true;

    while (go_on) {
        ssize_t length = recv(peer->socket, in, sizeof(in), 0);
        struct wire_message question;

        if (length <= 0 || wire_decode(in, (size_t)length, &question, NULL) < 0)
            break;
        go_on = answer_one(peer, &question);
        wire_message_finish(&question);
    }
    close(peer->socket);
    return NULL;
}

/* Fetches a view within `time` while the peer answers by the rule; -1: without a limit of ours. */
static int look_within(bool (*rule)(const struct wire_message *, struct wire_message *),
                       int64_t time, struct pool_view *ret_view, struct berth_error *error)
{
    struct session session = {.address = &address, .in = malloc(WIRE_MESSAGE_MAX)};
    struct peer peer = {.rule = rule};
    int pair[2];
    int code;

    assert_non_null(session.in);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    session.socket = pair[0];
    peer.socket = pair[1];
    assert_int_equal(pthread_create(&peer.thread, NULL, run_peer, &peer), 0);
    code = time < 0 ? pool_view_fetch(&session, ret_view, error)
                    : pool_view_fetch_within(&session, time, ret_view, error);
    session_close(&session);
    pthread_join(peer.thread, NULL);
    return code;
}

static int look_at(bool (*rule)(const struct wire_message *, struct wire_message *),
                   struct pool_view *ret_view, struct berth_error *error)
{
    return look_within(rule, -1, ret_view, error);
}

static void check_refused(bool (*rule)(const struct wire_message *, struct wire_message *),
                          int wanted_code, const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_view view = {0};

    assert_fails(look_at(rule, &view, &error), wanted_code, &error, wanted);
    assert_null(view.snapshot.slots.items);
}

/* Moves the items of a test view to an answer. */
static void give(struct pool_view view, struct wire_message *answer)
{
    answer->snapshot = view.snapshot;
    vector_finish(&view.uses);
}

/* One device, one lease or one claim to a page, two of each. */
static bool in_small_pages(const struct wire_message *question, struct wire_message *answer)
{
    struct pool_view view = view_of(question->section == WIRE_SECTION_DEVICES ? 1 : 0);

    if (question->type == WIRE_HELLO) {
        answer->about.inventory = view_text("machine.yaml");
        return true;
    }
    if (question->section == WIRE_SECTION_DEVICES)
        view.snapshot.slots.items[0].device->id.index = (uint32_t)question->after;
    if (question->section == WIRE_SECTION_LEASES) {
        struct lease_info *lease = view_lease(&view, question->after + 1, 0, 0);
        struct device_id *id = vector_append(&lease->devices);

        assert_non_null(id);
        *id = (struct device_id){VENDOR_NVIDIA, 1, DEVICE_NO_MIG};
    }
    if (question->section == WIRE_SECTION_QUEUE)
        view_claim(&view, 10, "1 device", "busy")->position = (uint32_t)question->after + 1;
    give(view, answer);
    answer->section = question->after == 0 ? question->section : question->section + 1;
    answer->after = question->after == 0 ? 1 : 0;
    if (answer->section > WIRE_SECTION_QUEUE)
        answer->section = WIRE_SECTION_END;
    return true;
}

static void pages_are_put_together(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_view view;

    (void)state;
    assert_int_equal(look_at(in_small_pages, &view, &error), 0);
    assert_int_equal(view.snapshot.slots.count, 2);
    assert_int_equal(view.snapshot.leases.count, 2);
    assert_int_equal(view.snapshot.claims.count, 2);
    assert_string_equal(view.about.inventory, "machine.yaml");
    assert_int_equal(pool_view_first_use(&view, 0), view.uses.count);
    assert_int_equal(pool_view_first_use(&view, 1), 0);
    assert_int_equal(view.uses.count, 2);
    assert_int_equal(view.snapshot.leases.items[view.uses.items[1].lease].id, 2);
    pool_view_finish(&view);
}

/* A later version may have more sections. */
static bool with_more_sections(const struct wire_message *question, struct wire_message *answer)
{
    answer->section = question->section == WIRE_SECTION_DEVICES ? 17 : WIRE_SECTION_DEVICES;
    return true;
}

static void later_sections_end_the_look(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_view view;

    (void)state;
    assert_int_equal(look_at(with_more_sections, &view, &error), 0);
    pool_view_finish(&view);
}

static bool with_the_same_page(const struct wire_message *question, struct wire_message *answer)
{
    (void)question;
    answer->section = WIRE_SECTION_DEVICES;
    answer->after = 5;
    return true;
}

static bool with_an_earlier_page(const struct wire_message *question, struct wire_message *answer)
{
    answer->section =
        question->section == WIRE_SECTION_DEVICES ? WIRE_SECTION_LEASES : WIRE_SECTION_DEVICES;
    answer->after = 9;
    return true;
}

static bool without_end(const struct wire_message *question, struct wire_message *answer)
{
    answer->section = WIRE_SECTION_LEASES;
    answer->after = question->after + 1;
    return true;
}

static bool with_a_wrong_type(const struct wire_message *question, struct wire_message *answer)
{
    answer->type = question->type == WIRE_LOOK ? WIRE_DONE : WIRE_PAGE;
    return true;
}

static bool with_a_refusal(const struct wire_message *question, struct wire_message *answer)
{
    (void)question;
    answer->type = WIRE_REFUSED;
    answer->error = (uint32_t)-BERTH_ERROR_PERMISSION;
    answer->text = view_text("not for you");
    return true;
}

static bool with_silence(const struct wire_message *question, struct wire_message *answer)
{
    (void)answer;
    return question->type == WIRE_HELLO;
}

static void what_makes_no_sense_is_refused(void **state)
{
    (void)state;
    check_refused(with_the_same_page, BERTH_ERROR_SYNTAX,
                  "cannot read the pool: its pages are out of order");
    check_refused(with_an_earlier_page, BERTH_ERROR_SYNTAX,
                  "cannot read the pool: its pages are out of order");
    check_refused(without_end, BERTH_ERROR_LIMIT,
                  "cannot read the pool: it has more than 4096 pages");
    check_refused(with_a_wrong_type, BERTH_ERROR_SYNTAX,
                  "expected the pool's answer 'page', got type 68");
    check_refused(with_a_refusal, BERTH_ERROR_PERMISSION, "not for you");
    check_refused(with_silence, BERTH_ERROR_IO, "berth.sock: the daemon is gone");
}

static void another_inventory_is_refused(void **state)
{
    (void)state;
    address.inventory = (char *)"/x/other.yaml";
    check_refused(in_small_pages, BERTH_ERROR_INVALID,
                  "expected the pool of '/x/other.yaml', got the pool of 'machine.yaml'");
    check_refused(with_more_sections, BERTH_ERROR_INVALID,
                  "expected the pool of '/x/other.yaml', got the pool of the hardware");
    address.inventory = NULL;
}

/* Answers with a number that nobody waits for. */
static bool to_another_question(const struct wire_message *question, struct wire_message *answer)
{
    answer->number = question->number + 1;
    return true;
}

static void the_error_names_the_limit(void **state)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct pool_view view = {0};

    (void)state;
    assert_fails(look_within(to_another_question, DURATION_SECOND / 50, &view, &error),
                 BERTH_ERROR_IO, &error, "the daemon did not answer within 20ms");
    assert_null(view.snapshot.slots.items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_put_together),
        cmocka_unit_test(later_sections_end_the_look),
        cmocka_unit_test(what_makes_no_sense_is_refused),
        cmocka_unit_test(another_inventory_is_refused),
        cmocka_unit_test(the_error_names_the_limit),
    };

    return cmocka_run_group_tests_name("pool_view", tests, NULL, NULL);
}
