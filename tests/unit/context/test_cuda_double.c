/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the double of CUDA's driver follows the driver's rules.
 */
#include "support/unit.h"

#include "support/hardware/cuda_world.h"

#include "context/cuda.h"

/* The driver's functions that the tests call. */
static struct cuda_functions cuda;
static int (*get_name)(char *text, int size, int device);
static int (*synchronize)(void);

static void load(const struct cuda_world *world)
{
    static const struct {
        const char *name;
        size_t offset;
    } symbols[] = {
#define SYMBOL(member, symbol, required, parameters) \
    {symbol, offsetof(struct cuda_functions, member)},
        CUDA_FUNCTIONS(SYMBOL)
#undef SYMBOL
    };
    void *library = dlopen(world->library, RTLD_NOW | RTLD_LOCAL);
    void *address;

    assert_non_null(library);
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        address = dlsym(library, symbols[i].name);
        memcpy((char *)&cuda + symbols[i].offset, &address, sizeof(address));
    }
    address = dlsym(library, "cuDeviceGetName");
    memcpy(&get_name, &address, sizeof(address));
    address = dlsym(library, "cuCtxSynchronize");
    memcpy(&synchronize, &address, sizeof(address));
}

static void start(const struct cuda_world *world)
{
    load(world);
    assert_int_equal(cuda.init(0), 0);
}

/* Returns the names of all devices that CUDA shows, in its order: "A,B"; or the status of cuInit.
 */
static const char *shown(struct cuda_world *world)
{
    static char names[512];
    int count = 0;
    int status;

    world->cuda.restart(false);
    load(world);
    status = cuda.init(0);
    snprintf(names, sizeof(names), "%d", status);
    if (status == 0) {
        assert_int_equal(cuda.count(&count), 0);
        names[0] = '\0';
    }
    for (int i = 0; i < count; i++) {
        char name[64];

        assert_int_equal(get_name(name, sizeof(name), i), 0);
        snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", i == 0 ? "" : ",",
                 name);
    }
    return names;
}

static void nothing_works_before_it_is_started(void **state)
{
    struct cuda_world *world = *state;
    void *context;
    int number;

    load(world);
    assert_int_equal(cuda.count(&number), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuda.by_ordinal(&number, 0), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuda.retain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuda.get_current(&context), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuda.stream_query(NULL), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuda.init(1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda.init(0), 0);
    assert_int_equal(cuda.count(&number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(cuda.by_ordinal(&number, 2), CUDA_ERROR_INVALID_DEVICE);
    assert_int_equal(cuda.by_ordinal(&number, -1), CUDA_ERROR_INVALID_DEVICE);
}

static void a_context_lives_from_the_first_retain_to_the_last_release(void **state)
{
    struct cuda_world *world = *state;
    void *one;
    void *other;
    unsigned flags;
    int active;
    size_t numbers[2];

    start(world);
    assert_int_equal(cuda.release(0), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuda.state(0, &flags, &active), 0);
    assert_int_equal(active, 0);
    assert_int_equal(cuda.retain(&one, 0), 0);
    assert_int_equal(cuda.retain(&other, 0), 0);
    assert_ptr_equal(one, other);
    assert_int_equal(cuda.memory(&numbers[0], &numbers[1]), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuda.set_current(one), 0);
    assert_int_equal(cuda.memory(&numbers[0], &numbers[1]), 0);
    assert_int_equal(numbers[0], 20000000000);
    assert_int_equal(numbers[1], 80000000000);
    assert_int_equal(cuda.release(0), 0);
    assert_int_equal(cuda.stream_query(NULL), 0);
    assert_int_equal(cuda.release(0), 0);
    assert_int_equal(cuda.stream_query(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuda.release(0), CUDA_ERROR_INVALID_CONTEXT);
    /* The driver's device 0 is unit 1 of the file. */
    assert_int_equal(world->cuda.counts(1).lives, 1);
    assert_int_equal(world->cuda.counts(1).retains, 2);
    assert_int_equal(world->cuda.counts(1).releases, 2);
    assert_int_equal(world->cuda.counts(0).retains, 0);
}

static void a_reset_ends_a_context_and_keeps_its_references(void **state)
{
    struct cuda_world *world = *state;
    void *context;
    void *again;

    start(world);
    assert_int_equal(cuda.retain(&context, 0), 0);
    assert_int_equal(cuda.set_current(context), 0);
    assert_int_equal(cuda.reset(0), 0);
    assert_int_equal(cuda.get_current(&again), 0);
    assert_ptr_equal(again, context);
    assert_int_equal(cuda.stream_query(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    assert_int_equal(cuda.retain(&again, 0), 0);
    assert_ptr_equal(again, context);
    assert_int_equal(cuda.stream_query(NULL), 0);
    assert_int_equal(world->cuda.counts(1).lives, 2);
    assert_int_equal(cuda.release(0), 0);
    assert_int_equal(cuda.stream_query(NULL), 0);
    assert_int_equal(cuda.release(0), 0);
    assert_false(world->cuda.counts(1).is_active);
}

static void a_fault_sticks_until_the_context_ends(void **state)
{
    struct cuda_world *world = *state;
    void *context;
    size_t numbers[2];

    start(world);
    world->cuda.fault(1, 700); /* the device has no context yet */
    assert_int_equal(cuda.retain(&context, 0), 0);
    assert_int_equal(cuda.set_current(context), 0);
    assert_int_equal(cuda.stream_query(NULL), 0);
    world->cuda.fault(1, 700);
    world->cuda.fault(1, 719);
    assert_int_equal(cuda.stream_query(NULL), 700);
    assert_int_equal(cuda.memory(&numbers[0], &numbers[1]), 700);
    assert_int_equal(synchronize(), 700);
    assert_int_equal(cuda.retain(&context, 0), 700);
    assert_int_equal(world->cuda.counts(1).references, 1);
    assert_int_equal(cuda.retain(&context, 1), 0);
    assert_int_equal(cuda.push(context), 0);
    assert_int_equal(cuda.stream_query(NULL), 0);
    assert_int_equal(cuda.reset(0), 0);
    assert_int_equal(cuda.retain(&context, 0), 0);
    assert_int_equal(cuda.set_current(context), 0);
    assert_int_equal(cuda.stream_query(NULL), 0);
}

static void each_thread_has_a_stack(void **state)
{
    struct cuda_world *world = *state;
    void *one;
    void *other;
    void *popped;

    start(world);
    assert_int_equal(cuda.retain(&one, 0), 0);
    assert_int_equal(cuda.retain(&other, 1), 0);
    assert_int_equal(cuda.pop(&popped), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuda.push(one), 0);
    assert_int_equal(cuda.push(other), 0);
    assert_int_equal(world->cuda.depth(), 2);
    assert_int_equal(cuda.pop(&popped), 0);
    assert_ptr_equal(popped, other);
    assert_int_equal(cuda.set_current(other), 0);
    assert_int_equal(world->cuda.depth(), 1);
    assert_int_equal(cuda.set_current(NULL), 0);
    assert_int_equal(world->cuda.depth(), 0);
    assert_int_equal(cuda.push(NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda.get_current(NULL), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda.push(&popped), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(cuda.set_current(&popped), CUDA_ERROR_INVALID_CONTEXT);
}

static void flags_are_checked(void **state)
{
    struct cuda_world *world = *state;
    void *context;
    unsigned flags;
    int active;

    start(world);
    assert_int_equal(cuda.set_flags(0, 0x08), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda.set_flags(0, 0x100), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda.state(0, NULL, &active), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda.set_flags(0, 0x03), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuda.set_flags_v1(0, 0x04), 0);
    assert_int_equal(cuda.retain(&context, 0), 0);
    assert_int_equal(cuda.set_flags_v1(0, 0x01), CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
    assert_int_equal(cuda.set_flags(0, 0x11), 0);
    assert_int_equal(cuda.state(0, &flags, &active), 0);
    assert_int_equal(flags, 0x11);
    assert_int_equal(active, 1);
    assert_int_equal(cuda.reset(0), 0);
    assert_int_equal(cuda.state(0, &flags, &active), 0);
    assert_int_equal(flags, 0);
    assert_int_equal(active, 0);
}

#define FOUR                                                              \
    "gpu\n uuid GPU-c0000000-0000-0000-0000-000000000000\n pci 0:3:0.0\n" \
    " name C\n"                                                           \
    "gpu\n uuid GPU-aa000000-0000-0000-0000-000000000000\n pci 0:1:0.0\n" \
    " name A\n"                                                           \
    "gpu\n uuid GPU-ab000000-0000-0000-0000-000000000000\n pci 0:2:0.0\n" \
    " name B\n"                                                           \
    "gpu\n uuid GPU-d0000000-0000-0000-0000-000000000000\n pci 0:4:0.0\n" \
    " name D\n speed 2\n"

static void variables_say_what_is_shown(void **state)
{
    static const struct {
        const char *order;
        const char *visible;
        const char *shown;
    } cases[] = {
        {NULL, NULL, "D,A,B,C"},
        {"FASTEST_FIRST", NULL, "D,A,B,C"},
        {"PCI_BUS_ID", NULL, "A,B,C,D"},
        {"PCI_BUS_ID", "2,0", "C,A"},
        {NULL, "0", "D"},
        {"PCI_BUS_ID", "0,2,-1,1", "A,C"},
        {"PCI_BUS_ID", "1,9,0", "B"},
        {"PCI_BUS_ID", "1,GPU-c,0", "B"},
        {"PCI_BUS_ID", "1, 2", "B,C"},
        {"PCI_BUS_ID", "", "100"},
        {"PCI_BUS_ID", "-1", "100"},
        {"PCI_BUS_ID", "none", "100"},
        {"PCI_BUS_ID", "1,1", "100"},
        {NULL, "GPU-c0000000-0000-0000-0000-000000000000", "C"},
        {NULL, "GPU-d,GPU-aa", "D,A"},
        {NULL, "GPU-d,GPU-x,GPU-c", "D"},
        {NULL, "GPU-d,0", "D"},
        {NULL, "GPU-d,GPU-a", "100"}, /* two UUIDs begin with this */
        {NULL, "GPU-d,GPU-d0", "100"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cuda_world_says(FOUR);
        unsetenv("CUDA_DEVICE_ORDER");
        unsetenv("CUDA_VISIBLE_DEVICES");
        if (cases[i].order != NULL)
            setenv("CUDA_DEVICE_ORDER", cases[i].order, 1);
        if (cases[i].visible != NULL)
            setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
        assert_string_equal(shown(*state), cases[i].shown);
    }
}

#define INSTANCES                                                                  \
    "gpu\n uuid GPU-a0000000-0000-0000-0000-000000000000\n pci 0:1:0.0\n name A\n" \
    "gpu\n uuid GPU-b0000000-0000-0000-0000-000000000000\n pci 0:2:0.0\n name B\n" \
    "instance 1 0\n uuid MIG-10000000-0000-0000-0000-000000000000\n name B1\n"     \
    "instance 2 0\n uuid MIG-20000000-0000-0000-0000-000000000000\n name B2\n"

static void an_instance_is_shown_alone(void **state)
{
    static const struct {
        const char *visible;
        const char *shown;
        const char *shown_of_many;
    } cases[] = {
        {NULL, "B1", "A,B1,B2"},
        {"0", "A", "A"},
        {"1", "B1", "B1"},
        {"0,1", "B1", "A,B1"},
        {"GPU-b", "B1", "B1"},
        {"MIG-2", "B2", "B2"},
        {"MIG-20000000-0000-0000-0000-000000000000,MIG-1", "B2", "B2,B1"},
        {"MIG-GPU-b0000000-0000-0000-0000-000000000000/2/0", "B2", "B2"},
        {"MIG-GPU-b0000000-0000-0000-0000-000000000000/2/1", "100", "100"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsetenv("CUDA_VISIBLE_DEVICES");
        if (cases[i].visible != NULL)
            setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
        cuda_world_says(INSTANCES);
        assert_string_equal(shown(*state), cases[i].shown);
        cuda_world_says("many-instances\n" INSTANCES);
        assert_string_equal(shown(*state), cases[i].shown_of_many);
    }
}

static void an_instance_has_its_own_uuid_in_the_second_version_only(void **state)
{
    struct cuda_uuid uuid;

    cuda_world_says(INSTANCES);
    start(*state);
    assert_int_equal(cuda.uuid_v1(&uuid, 0), 0);
    assert_int_equal(uuid.bytes[0], 0xb0);
    assert_int_equal(cuda.uuid_v2(&uuid, 0), 0);
    assert_int_equal(uuid.bytes[0], 0x10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, cuda_world_enter, cuda_world_leave)
    const struct CMUnitTest tests[] = {
        TEST(nothing_works_before_it_is_started),
        TEST(a_context_lives_from_the_first_retain_to_the_last_release),
        TEST(a_reset_ends_a_context_and_keeps_its_references),
        TEST(a_fault_sticks_until_the_context_ends),
        TEST(each_thread_has_a_stack),
        TEST(flags_are_checked),
        TEST(variables_say_what_is_shown),
        TEST(an_instance_is_shown_alone),
        TEST(an_instance_has_its_own_uuid_in_the_second_version_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
