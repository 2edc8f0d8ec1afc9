/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "engine/journal/journal.h"

#include "base/text/quantity.h"
#include "model/machine/device.h"
#include "support/engine/sample_events.h"

static void check_described(const struct engine_event *event, const char *wanted)
{
    struct text line = {0};

    journal_describe(event, &line);
    assert_string_equal(text_string(&line), wanted);
    text_finish(&line);
}

static void every_type_has_a_name(void **state)
{
    (void)state;
    for (enum event_type type = EVENT_REQUEST; type < EVENT_TYPES; type++) {
        const char *name = journal_name(type);

        assert_non_null(name);
        for (enum event_type other = EVENT_REQUEST; other < type; other++)
            assert_string_not_equal(name, journal_name(other));
    }
    assert_string_equal(journal_name(EVENT_GRANTED), "granted");
    assert_null(journal_name((enum event_type)0));
    assert_null(journal_name(EVENT_TYPES));
}

static void claims_are_described(void **state)
{
    static const uint32_t slots[] = {0, 1};
    struct engine_event event = {
        .type = EVENT_GRANTED,
        .time = 12500 * DURATION_SECOND / 1000,
        .claim = 3,
        .lease = 7,
        .request = 2,
        .slots = slots,
        .slot_count = 2,
        .replicas = 1,
        .expires = TIME_NEVER,
        .deadline = 20 * DURATION_SECOND,
        .reason = REFUSAL_PARENT_ENDED,
    };

    (void)state;
    check_described(&event, "12.5 granted lease 7 of claim 3 request 2: slots 0,1");
    event.claim = 0;
    event.replicas = 2;
    event.expires = 13 * DURATION_SECOND;
    check_described(&event, "12.5 granted lease 7 request 2: slots 0,1 in 2 replicas, until 13");
    event = (struct engine_event){.type = EVENT_QUEUED, .claim = 3, .request = 2, .time = 1};
    event.deadline = TIME_NEVER;
    check_described(&event, "0.000000001 queued claim 3 request 2");
    event.deadline = 20 * DURATION_SECOND;
    check_described(&event, "0.000000001 queued claim 3 request 2, until 20");
    event = (struct engine_event){.type = EVENT_RETURNED, .lease = 7, .claim = 3, .request = 2};
    event.deadline = 20 * DURATION_SECOND;
    check_described(&event, "0 returned lease 7 of claim 3 request 2, until 20");
    event = (struct engine_event){.type = EVENT_REQUEST, .request = 2, .share = 250000};
    check_described(&event, "0 request 2, taking 250000 millionths of each");
    event = (struct engine_event){.type = EVENT_REFUSED, .claim = 3};
    event.reason = REFUSAL_TIMED_OUT;
    check_described(&event, "0 refused claim 3: timed out");
    event.reason = (enum refusal)9;
    check_described(&event, "0 refused claim 3: 9");
}

static void requests_are_described(void **state)
{
    struct sample sample;

    (void)state;
    sample_of(EVENT_REQUEST, &sample);
    sample.event.time = 0;
    check_described(&sample.event,
                    "0 request 2 of uid 1000, groups 100,4294967295, within lease 6, masked to "
                    "amd0,nvidia1.2: all devices for each of 3 replicas, vendor dri, model A100, "
                    "at least 40 GiB free, at least 80 GiB of memory, capability 8.10 or higher, "
                    "only nvidia0,amd1,dri2, avoiding nvidia0.3, shared by time-slice, share "
                    "0.25, 1 GiB reserved, for at most 0s, spread, priority high, policy first, "
                    "affinity team, opportunistic, ranks, or on the CPU, not waiting, waiting 5 "
                    "ns, called train");
    sample.mask.count = 0;
    sample.party.group_count = 0;
    sample.event.what = NULL;
    check_described(&sample.event, "0 request 2 of uid 1000, within lease 6, masked to nothing");
    sample_finish(&sample);
}

static void texts_are_inert(void **state)
{
    struct request what;
    struct engine_event event = {.type = EVENT_REQUEST, .request = 2, .what = &what};

    (void)state;
    request_init(&what);
    what.name = copy_of("a\nb\033[2J");
    check_described(&event, "0 request 2: 1 device, called a\xef\xbf\xbd"
                            "b\xef\xbf\xbd[2J");
    request_finish(&what);
}

static void others_are_described(void **state)
{
    static const char *const wanted[EVENT_TYPES] = {
        [EVENT_FORGOTTEN] = "0 forgotten request 2",
        [EVENT_NOTICE] = "0 notice lease 7, until 10",
        [EVENT_REVOKED] = "0 revoked lease 7",
        [EVENT_EXPIRED] = "0 expired lease 7",
        [EVENT_DRAINING] = "0 draining lease 7",
        [EVENT_RELEASED] = "0 released lease 7",
        [EVENT_EXTENDED] = "0 extended lease 7, until 10",
        [EVENT_DEVICE] = "0 device 4: present, sick, dirty, asleep",
        [EVENT_PICKED] = "0 picked lease 9: slots 0,1",
        [EVENT_SLOT] = "0 slot 4: stamp 5, served 6, affinity 18446744073709551615",
        [EVENT_COUNTERS] = "0 counters lease 99 request 12",
        [EVENT_RETURNED] = "0 returned lease 7 of claim 3 request 2",
    };
    struct engine_event event = {.type = EVENT_DEVICE, .slot = 4, .health = HEALTH_UNKNOWN};

    (void)state;
    check_described(&event, "0 device 4: gone");
    for (enum event_type type = EVENT_REQUEST; type < EVENT_TYPES; type++) {
        struct sample sample;

        if (wanted[type] == NULL)
            continue;
        sample_of(type, &sample);
        sample.event.time = 0;
        sample.event.expires = 10 * DURATION_SECOND;
        check_described(&sample.event, wanted[type]);
        sample_finish(&sample);
    }
    event = (struct engine_event){.type = (enum event_type)200, .time = -DURATION_SECOND};
    check_described(&event, "-1 unknown type 200");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_a_name),  cmocka_unit_test(claims_are_described),
        cmocka_unit_test(requests_are_described), cmocka_unit_test(texts_are_inert),
        cmocka_unit_test(others_are_described),
    };

    return cmocka_run_group_tests_name("journal_describe", tests, NULL, NULL);
}
