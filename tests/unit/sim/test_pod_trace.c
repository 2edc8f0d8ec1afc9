/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "sim/pod_trace.h"

#include <string.h>

#include "support/failing_allocator.h"
#include "support/temporary_directory.h"
#include "support/traces.h"

#define MEBIBYTE ((uint64_t)1024 * 1024)

static void nodes_are_in_the_order_of_their_names(void **state)
{
    struct pod_trace trace =
        trace_of("b,2000,20,0,\nc,3000,30,2,T4\na,1000,10,8,V100\n", "p,1,1,1,1000,\n", 1);

    (void)state;
    assert_int_equal(trace.nodes.count, 3);
    assert_string_equal(trace.nodes.items[0].name, "a");
    assert_int_equal(trace.nodes.items[0].cpus, 1000);
    assert_int_equal(trace.nodes.items[0].memory, 10 * MEBIBYTE);
    assert_int_equal(trace.nodes.items[0].gpus, 8);
    assert_string_equal(trace.nodes.items[0].model, "V100");
    assert_string_equal(trace.nodes.items[1].name, "b");
    assert_null(trace.nodes.items[1].model);
    assert_string_equal(trace.nodes.items[2].name, "c");
    assert_int_equal(trace.capacity, 10000);
    pod_trace_finish(&trace);
}

static void pods_that_want_the_same_are_of_one_kind(void **state)
{
    struct pod_trace trace = trace_of("a,1,1,1,T4\n",
                                      "p,4,5,1,250,A|B\n"
                                      "q,4,5,0,0,A\n"
                                      "r,4,5,1,250,A|B\n"
                                      "s,4,6,1,250,A|B\n"
                                      "t,4,5,0,999,\n",
                                      1);
    const uint32_t *pods = trace.pods.items;
    const struct trace_kind *kind = &trace.kinds.items[pods[0]];

    (void)state;
    assert_int_equal(trace.pods.count, 5);
    assert_int_equal(trace.kinds.count, 3);
    assert_int_equal(pods[0], pods[2]);
    assert_int_not_equal(pods[0], pods[3]);
    /* Models and parts are ignored for a pod without GPUs. */
    assert_int_equal(pods[1], pods[4]);
    assert_int_equal(trace.kinds.items[pods[1]].pods, 2);
    assert_int_equal(kind->pods, 2);
    assert_int_equal(kind->gpus, 1);
    assert_int_equal(kind->part, 250);
    assert_int_equal(kind->cpus, 4);
    assert_int_equal(kind->memory, 5 * MEBIBYTE);
    assert_string_equal(kind->models, "A|B");
    assert_int_equal(pod_trace_demand(kind), 250);
    pod_trace_finish(&trace);
}

static void copies_of_nodes_have_names_of_their_own(void **state)
{
    struct pod_trace trace = trace_of("b,2,2,2,T4\na,1,1,1,\n", "p,1,1,1,1000,\n", 3);

    (void)state;
    assert_int_equal(trace.nodes.count, 6);
    assert_int_equal(trace.capacity, 9000);
    assert_string_equal(trace.nodes.items[0].name, "a");
    assert_string_equal(trace.nodes.items[1].name, "a~2");
    assert_string_equal(trace.nodes.items[2].name, "a~3");
    assert_string_equal(trace.nodes.items[5].name, "b~3");
    assert_int_equal(trace.nodes.items[5].gpus, 2);
    assert_string_equal(trace.nodes.items[5].model, "T4");
    pod_trace_finish(&trace);
}

static void check_machine(const struct pod_trace *trace, const uint32_t *order, const char *first)
{
    struct machine machine;

    assert_int_equal(pod_trace_build_machine(trace, order, &machine, NULL), 0);
    assert_int_equal(machine.hosts.count, 2);
    assert_string_equal(machine.hosts.items[0].name, first);
    assert_int_equal(machine.devices.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct device *device = &machine.devices.items[i];
        const struct host *host = &machine.hosts.items[device->host];

        assert_int_equal(device->id.index, i);
        assert_true(host->cpus.known && host->memory.known);
        if (strcmp(host->name, "b") == 0)
            assert_string_equal(device->name, "T4");
        else
            assert_null(device->name);
    }
    machine_finish(&machine);
}

static void a_machine_has_the_nodes_as_hosts(void **state)
{
    static const uint32_t turned[] = {1, 0};
    struct pod_trace trace = trace_of("b,2,2,2,T4\na,1,1,1,\n", "p,1,1,1,1000,\n", 1);

    (void)state;
    check_machine(&trace, NULL, "a");
    check_machine(&trace, turned, "b");
    pod_trace_finish(&trace);
}

static void check_request(const struct trace_kind *kind, const char *words)
{
    struct request request;
    struct text found = {0};

    assert_int_equal(pod_trace_build_request(kind, &request, NULL), 0);
    assert_int_equal(request_validate(&request, NULL), 0);
    request_describe(&request, &found);
    assert_string_equal(text_string(&found), words);
    text_finish(&found);
    request_finish(&request);
}

static void kinds_are_requests(void **state)
{
    struct trace_kind kind = {.gpus = 1, .part = 250, .models = (char *)"T4"};

    (void)state;
    check_request(&kind, "1 device, model T4, shared by time-slice, share 0.25");
    kind = (struct trace_kind){.gpus = 4, .part = 1000, .models = (char *)""};
    check_request(&kind, "4 devices");
    kind.gpus = 1;
    check_request(&kind, "1 device");
}

static int attempt_read(void *context)
{
    struct pod_trace trace;
    int code = pod_trace_read("nodes.csv", "pods.csv", 2, &trace, NULL);
    struct machine machine;

    (void)context;
    if (code < 0)
        return code;
    code = pod_trace_build_machine(&trace, NULL, &machine, NULL);
    if (code == 0)
        machine_finish(&machine);
    pod_trace_finish(&trace);
    return code;
}

static void without_memory_nothing_is_lost(void **state)
{
    (void)state;
    write_trace("b,2,2,2,T4\na,1,1,1,\n", "p,4,5,1,250,A|B\nq,4,5,0,0,\nr,1,1,1,1000,\n");
    assert_true(failing_allocator_try_all(attempt_read, NULL) > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_in_the_order_of_their_names),
        cmocka_unit_test(pods_that_want_the_same_are_of_one_kind),
        cmocka_unit_test(copies_of_nodes_have_names_of_their_own),
        cmocka_unit_test(a_machine_has_the_nodes_as_hosts),
        cmocka_unit_test(kinds_are_requests),
        cmocka_unit_test(without_memory_nothing_is_lost),
    };

    return cmocka_run_group_tests_name("sim_trace", tests, temporary_directory_enter,
                                       temporary_directory_leave);
}
