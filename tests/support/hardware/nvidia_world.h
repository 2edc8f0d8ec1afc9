/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine with NVIDIA's GPUs: the NVML double (doubles/nvml_machine.h) and files below a root.
 */
#ifndef TESTS_NVIDIA_WORLD_H
#define TESTS_NVIDIA_WORLD_H

#include "support/hardware/double_log.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/text.h"
#include "hardware/vendors.h"
#include "support/hardware/made_up_machine.h"

struct nvidia_world {
    void *directory;
    struct vendor_context context;
    struct findings listed; /* of the last world_list */
    struct findings seen;   /* of the last world_look: all that was read */
    struct berth_error error;
    unsigned failures; /* reads that failed in the last world_look */
    struct berth_error failure;
};

/* Makes a PCI device of the kernel's nvidia driver, awake ("active") or not. A second call changes
 * that. */
static inline void world_gpu(const char *address, const char *runtime_status)
{
    char device[64];
    char driver[80];

    snprintf(device, sizeof(device), "/sys/devices/pci0000:00/%s", address);
    machine_value(device, "power/runtime_status", runtime_status);
    machine_value(device, "numa_node", "1");
    machine_value(device, "local_cpulist", "8-15");
    snprintf(driver, sizeof(driver), "%s/driver", device + 1);
    if (access(driver, F_OK) == 0)
        return;
    machine_pci(device, "10de:20b0");
    machine_driver(device, "pci", "nvidia");
}

/* Describes the double's machine from now on. */
static inline void world_says(const char *statements)
{
    FILE *file = fopen("machine.new", "we");

    assert_non_null(file);
    assert_true(fputs(statements, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename("machine.new", "machine"), 0);
}

/* Makes berth load a double of NVML from now on: "" (the current version), "-old" or "-wide". */
static inline void world_loads(const char *kind)
{
    const char *build = getenv("BERTH_BUILD_ROOT");
    struct text path = {0};

    if (build == NULL) {
        print_message("skip: BERTH_BUILD_ROOT is not set, so there is no double of NVML\n");
        skip();
    }
    text_append_format(&path, "%s/tests/libnvidia-ml%s.so.1", build, kind);
    assert_int_equal(setenv("BERTH_NVML", text_string(&path), 1), 0);
    text_finish(&path);
}

static inline int world_enter(void **state)
{
    struct nvidia_world *world = calloc(1, sizeof(*world));
    struct text path = {0};

    if (world == NULL || machine_enter(&world->directory) < 0)
        return -1;
    text_append_format(&path, "%s/machine", (char *)world->directory);
    setenv("NVML_DOUBLE", text_string(&path), 1);
    text_append(&path, ".log");
    setenv("NVML_DOUBLE_LOG", text_string(&path), 1);
    text_finish(&path);
    world_loads("");
    world->context.root = &machine;
    *state = world;
    return 0;
}

static inline int world_leave(void **state)
{
    struct nvidia_world *world = *state;
    int result;

    nvidia_table.close(&world->context);
    findings_finish(&world->listed);
    findings_finish(&world->seen);
    unsetenv("BERTH_NVML");
    unsetenv("NVML_DOUBLE");
    unsetenv("NVML_DOUBLE_LOG");
    result = machine_leave(&world->directory);
    free(world);
    return result;
}

static inline int world_list(struct nvidia_world *world)
{
    findings_finish(&world->listed);
    world->listed = (struct findings){0};
    world->error = (struct berth_error)BERTH_ERROR_INIT;
    return nvidia_table.list(&world->context, NULL, &world->listed, &world->error);
}

/* Lists the devices, which must succeed, and reads each of them. Leaves out devices whose read
 * fails, as the worker does. */
static inline void world_look(struct nvidia_world *world)
{
    const struct device_finding *found;

    assert_int_equal(world_list(world), 0);
    findings_finish(&world->seen);
    world->seen = (struct findings){0};
    world->failures = 0;
    vector_for_each (found, &world->listed.found) {
        struct findings one = {0};
        struct device_finding *read;

        if (nvidia_table.read(&world->context, found, &one, &world->failure) < 0) {
            world->failures++;
            findings_finish(&one);
            continue;
        }
        vector_for_each (read, &one.found) {
            struct device_finding *kept = vector_append(&world->seen.found);

            assert_non_null(kept);
            *kept = *read;
        }
        one.found.count = 0;
        findings_finish(&one);
    }
}

/* Returns the device with this id, which must have been read. */
static inline const struct device_finding *world_found(const struct nvidia_world *world,
                                                       const char *id)
{
    const struct device_finding *found;

    vector_for_each (found, &world->seen.found) {
        if (strcmp(device_id_format(found->device->id).text, id) == 0)
            return found;
    }
    fail_msg("%s was not read", id);
    return NULL;
}

static inline const struct device *world_device(const struct nvidia_world *world, const char *id)
{
    return world_found(world, id)->device;
}

/* Checks that a figure is known, and that it has this value and a time. */
#define assert_figure(figure, wanted)                  \
    do {                                               \
        assert_true((figure).known);                   \
        assert_int_equal((figure).value, (wanted));    \
        assert_true((figure).sampled_at > 1600000000); \
    } while (0)

#define assert_number(number, wanted)               \
    do {                                            \
        assert_true((number).known);                \
        assert_int_equal((number).value, (wanted)); \
    } while (0)

/* The machine of most tests: two GPUs, the first one with all facts. */
#define WORLD_TWO                                      \
    "driver 550.163.01\n"                              \
    "topology 0 1 20\n"                                \
    "gpu\n"                                            \
    " name NVIDIA A100-SXM4-80GB\n"                    \
    " uuid GPU-aaaaaaaa-0000-0000-0000-000000000000\n" \
    " pci 00010007:0F:00.0 0x20b210de 0x146310de\n"    \
    " minor 4\n"                                       \
    " memory 85899345920 80000000000 600000000\n"      \
    " bar1 1000 900\n"                                 \
    " utilization 37 12\n"                             \
    " temperature 41\n"                                \
    " power 72500\n"                                   \
    " clocks 1410 1400 1593 1275\n"                    \
    " capability 8 0\n"                                \
    " ecc 3 0\n"                                       \
    " remapped 1 0 0 0\n"                              \
    " retired-pending 0\n"                             \
    " mig 0 0\n"                                       \
    " mig-most 7\n"                                    \
    "gpu\n"                                            \
    " name NVIDIA A100-SXM4-80GB\n"                    \
    " uuid GPU-aaaaaaaa-0000-0000-0000-000000000001\n" \
    " pci 00000000:47:00.0\n"                          \
    " minor 1\n"                                       \
    " memory 85899345920 85000000000 600000000\n"      \
    " utilization 0 0\n"                               \
    " temperature 30\n"                                \
    " power 60000\n"                                   \
    " clocks 210 210 1593 585\n"                       \
    " capability 8 0\n"

#endif
