/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "probe/probe_channel.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/failing_allocator.h"
#include "support/random.h"

struct pair {
    struct probe_channel one;
    struct probe_channel other;
};

static void pair_init(struct pair *pair)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    probe_channel_init(&pair->one, ends[0]);
    probe_channel_init(&pair->other, ends[1]);
}

static void pair_finish(struct pair *pair)
{
    probe_channel_finish(&pair->one);
    probe_channel_finish(&pair->other);
}

static void check_received(struct probe_channel *channel, const void *wanted, size_t wanted_length)
{
    const unsigned char *bytes = NULL;
    size_t length = SIZE_MAX;

    assert_int_equal(probe_channel_receive(channel, &bytes, &length), 1);
    assert_int_equal(length, wanted_length);
    assert_memory_equal(bytes, wanted, wanted_length);
}

static void check_nothing(struct probe_channel *channel, int wanted)
{
    const unsigned char *bytes;
    size_t length;

    assert_int_equal(probe_channel_receive(channel, &bytes, &length), wanted);
}

static void packets_come_whole_and_in_order(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    check_nothing(&pair.other, 0);
    assert_int_equal(probe_channel_send(&pair.one, "one", 3), 0);
    assert_int_equal(probe_channel_send(&pair.one, "", 0), 0);
    assert_int_equal(probe_channel_send(&pair.one, "three", 5), 0);
    assert_int_equal(probe_channel_send(&pair.other, "back", 4), 0);
    check_received(&pair.other, "one", 3);
    check_received(&pair.other, "", 0);
    check_received(&pair.other, "three", 5);
    check_nothing(&pair.other, 0);
    check_received(&pair.one, "back", 4);
    pair_finish(&pair);
}

static void a_packet_may_come_byte_by_byte(void **state)
{
    static const unsigned char packet[] = {3, 0, 0, 0, 'a', 'b', 'c'};
    struct pair pair;

    (void)state;
    pair_init(&pair);
    for (size_t i = 0; i < sizeof(packet); i++) {
        check_nothing(&pair.other, 0);
        assert_int_equal(write(pair.one.descriptor, &packet[i], 1), 1);
    }
    check_received(&pair.other, "abc", 3);
    pair_finish(&pair);
}

/* Bytes that cannot be sent now are kept, and sent when the other end reads. */
static void a_packet_larger_than_the_pipe_is_sent_in_pieces(void **state)
{
    enum { LENGTH = 4 * 1024 * 1024 };
    struct test_random random = {.state = 1};
    unsigned char *large = malloc(LENGTH);
    const unsigned char *bytes = NULL;
    size_t length = 0;
    struct pair pair;
    int code = 0;

    (void)state;
    assert_non_null(large);
    for (size_t i = 0; i < LENGTH; i++)
        large[i] = (unsigned char)test_random_next(&random);
    pair_init(&pair);
    assert_int_equal(probe_channel_send(&pair.one, large, LENGTH), 0);
    assert_int_equal(probe_channel_send(&pair.one, "more", 4), 0);
    assert_true(probe_channel_has_unsent(&pair.one));
    while (code == 0) {
        code = probe_channel_receive(&pair.other, &bytes, &length);
        assert_int_equal(probe_channel_flush(&pair.one), 0);
    }
    assert_int_equal(code, 1);
    assert_int_equal(length, LENGTH);
    assert_memory_equal(bytes, large, LENGTH);
    check_received(&pair.other, "more", 4);
    assert_false(probe_channel_has_unsent(&pair.one));
    pair_finish(&pair);
    free(large);
}

static void packets_that_are_too_long_are_refused(void **state)
{
    static const unsigned char header[] = {1, 0, 0, 1}; /* 16 MiB and a byte */
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(probe_channel_send(&pair.one, header, PROBE_CHANNEL_PACKET_MAX + 1),
                     BERTH_ERROR_LIMIT);
    assert_int_equal(write(pair.one.descriptor, header, sizeof(header)), sizeof(header));
    check_nothing(&pair.other, BERTH_ERROR_LIMIT);
    check_nothing(&pair.other, BERTH_ERROR_LIMIT);
    pair_finish(&pair);
}

static void the_other_end_may_be_gone(void **state)
{
    static const unsigned char half[] = {9, 0, 0, 0, 'h', 'a', 'l', 'f'};
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(probe_channel_send(&pair.one, "last", 4), 0);
    assert_int_equal(write(pair.one.descriptor, half, sizeof(half)), sizeof(half));
    probe_channel_finish(&pair.one);
    check_received(&pair.other, "last", 4);
    check_nothing(&pair.other, BERTH_ERROR_IO);
    assert_int_equal(probe_channel_send(&pair.other, "x", 1), BERTH_ERROR_IO); /* without SIGPIPE */
    pair_finish(&pair);
}

static void out_of_memory_is_reported(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    failing_allocator_start(1);
    assert_int_equal(probe_channel_send(&pair.one, "one", 3), BERTH_ERROR_MEMORY);
    failing_allocator_stop();
    pair_finish(&pair);
    pair_init(&pair);
    assert_int_equal(probe_channel_send(&pair.one, "one", 3), 0);
    failing_allocator_start(1);
    check_nothing(&pair.other, BERTH_ERROR_MEMORY);
    failing_allocator_stop();
    pair_finish(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packets_come_whole_and_in_order),
        cmocka_unit_test(a_packet_may_come_byte_by_byte),
        cmocka_unit_test(a_packet_larger_than_the_pipe_is_sent_in_pieces),
        cmocka_unit_test(packets_that_are_too_long_are_refused),
        cmocka_unit_test(the_other_end_may_be_gone),
        cmocka_unit_test(out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
