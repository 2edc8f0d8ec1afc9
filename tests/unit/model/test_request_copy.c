/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "model/request.h"

#include <berth/error.h>
#include <stdlib.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/spec/requests.h"
#include "support/steps.h"

static void check_copied(const struct request *request)
{
    struct request copy;

    assert_int_equal(request_copy(&copy, request), 0);
    assert_true(request_equals(&copy, request));
    assert_true(request_equals(request, &copy));
    assert_true(copy.model == NULL || copy.model != request->model);
    assert_true(copy.wanted.items == NULL || copy.wanted.items != request->wanted.items);
    request_finish(&copy);
}

static void a_copy_is_equal_and_its_own(void **state)
{
    struct request request;
    struct request copy;

    (void)state;
    request_init(&request);
    check_copied(&request);
    request_fill(&request);
    check_copied(&request);
    assert_int_equal(request_copy(&copy, &request), 0);
    request_finish(&request);
    assert_string_equal(copy.model, "A100");
    assert_string_equal(copy.policy, "first");
    assert_string_equal(copy.affinity, "team");
    assert_string_equal(copy.name, "train");
    assert_int_equal(copy.wanted.count, 3);
    assert_int_equal(copy.avoided.items[0].mig, 3);
    request_finish(&copy);
}

static void set_empty(char **text)
{
    free(*text);
    *text = copy_of("");
}

static void unset(char **text)
{
    free(*text);
    *text = NULL;
}

/* The number of changes of each kind; together they change every member in every way. */
enum { NUMBERS = 16, TEXTS = 12, FLAGS = 6, OTHERS = 12 };

static void change_number(struct request *request, size_t change)
{
    struct optional_number *numbers[] = {
        &request->min_free, &request->min_memory, &request->share, &request->memory,
        &request->wait,     &request->time,       &request->cpus,  &request->host_memory,
    };
    struct optional_number *number = numbers[change % COUNT(numbers)];

    if (change < COUNT(numbers))
        number->value++;
    else
        number->known = false;
}

static void change_text(struct request *request, size_t change)
{
    char **texts[] = {
        &request->model, &request->policy,       &request->affinity,
        &request->name,  &request->mps_pipe_dir, &request->mps_log_dir,
    };

    if (change < COUNT(texts))
        set_empty(texts[change]);
    else
        unset(texts[change % COUNT(texts)]);
}

static void change_flag(struct request *request, size_t change)
{
    bool *flags[] = {
        &request->gpus.all, &request->opportunistic, &request->ranks,
        &request->or_cpu,   &request->nonblock,      &request->min_cap.known,
    };

    *flags[change] = !*flags[change];
}

static void change_other(struct request *request, size_t change)
{
    uint32_t *counts[] = {&request->gpus.min, &request->gpus.max, &request->replicas};

    switch (change) {
    case 3:
        request->vendor_rule = VENDOR_RULE_MIXED;
        break;
    case 4:
        request->vendor = VENDOR_AMD;
        break;
    case 5:
        request->sharing = SHARING_MPS;
        break;
    case 6:
        request->scheduling = SCHEDULING_GANG;
        break;
    case 7:
        request->priority = PRIORITY_LOW;
        break;
    case 8:
        request->wanted.count--;
        break;
    case 9:
        request->avoided.items[0].index++;
        break;
    case 10:
        request->min_cap.major++;
        break;
    case 11:
        request->min_cap.minor++;
        break;
    default:
        *counts[change] += 1;
    }
}

static void change_one(struct request *request, size_t change)
{
    if (change < NUMBERS)
        change_number(request, change);
    else if (change < NUMBERS + TEXTS)
        change_text(request, change - NUMBERS);
    else if (change < NUMBERS + TEXTS + FLAGS)
        change_flag(request, change - NUMBERS - TEXTS);
    else
        change_other(request, change - NUMBERS - TEXTS - FLAGS);
}

static void every_member_counts(void **state)
{
    struct request request;

    (void)state;
    request_fill(&request);
    for (size_t change = 0; change < NUMBERS + TEXTS + FLAGS + OTHERS; change++) {
        struct request changed;

        assert_int_equal(request_copy(&changed, &request), 0);
        change_one(&changed, change);
        if (request_equals(&request, &changed) || request_equals(&changed, &request))
            fail_msg("change %zu makes no difference", change);
        request_finish(&changed);
    }
    request_finish(&request);
}

static void an_empty_text_is_not_none(void **state)
{
    struct request request;
    struct request other;

    (void)state;
    request_init(&request);
    request_init(&other);
    other.name = copy_of("");
    assert_false(request_equals(&request, &other));
    check_copied(&other);
    request_finish(&other);
}

static void the_value_of_what_is_unknown_does_not_count(void **state)
{
    struct request request;
    struct request other;

    (void)state;
    request_init(&request);
    request_init(&other);
    other.time.value = 7;
    other.min_cap.major = 8;
    assert_true(request_equals(&request, &other));
    other.time.known = true;
    assert_false(request_equals(&request, &other));
}

static void random_requests_are_copied(void **state)
{
    struct test_random random = {3};

    (void)state;
    for (unsigned long step = test_steps(2000); step > 0; step--) {
        struct request request;

        request_randomise(&request, &random);
        check_copied(&request);
        request_finish(&request);
    }
}

static int copy_full(void *context)
{
    struct request copy = {.replicas = 4711};
    int code = request_copy(&copy, context);

    if (code == 0)
        request_finish(&copy);
    else
        assert_int_equal(copy.replicas, 4711);
    return code;
}

static void a_copy_without_memory_leaves_nothing(void **state)
{
    struct request request;

    (void)state;
    request_fill(&request);
    assert_int_equal(failing_allocator_try_all(copy_full, &request), 8);
    request_finish(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_equal_and_its_own),
        cmocka_unit_test(every_member_counts),
        cmocka_unit_test(an_empty_text_is_not_none),
        cmocka_unit_test(the_value_of_what_is_unknown_does_not_count),
        cmocka_unit_test(random_requests_are_copied),
        cmocka_unit_test(a_copy_without_memory_leaves_nothing),
    };

    return cmocka_run_group_tests_name("request_copy", tests, NULL, NULL);
}
