/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the environment of a lease's command, and checks its variables.
 */
#ifndef TESTS_LAUNCH_ENVIRONMENTS_H
#define TESTS_LAUNCH_ENVIRONMENTS_H

#include "support/unit.h"

#include <berth/error.h>
#include <string.h>

#include "launch/environment.h"
#include "support/engine/machines.h"

#define NVIDIA (UINT32_C(1) << VENDOR_NVIDIA)
#define AMD    (UINT32_C(1) << VENDOR_AMD)
#define INTEL  (UINT32_C(1) << VENDOR_INTEL)
#define APPLE  (UINT32_C(1) << VENDOR_APPLE)
#define DRI    (UINT32_C(1) << VENDOR_DRI)

/* Variables that a shell may have set, and that must not reach the command. */
static const char *const polluted[] = {
    "PATH=/bin",
    "CUDA_VISIBLE_DEVICES=7",
    "CUDA_DEVICE_ORDER=FASTEST_FIRST",
    "NVIDIA_VISIBLE_DEVICES=all",
    "ROCR_VISIBLE_DEVICES=7",
    "HIP_VISIBLE_DEVICES=7",
    "GPU_DEVICE_ORDINAL=7",
    "ZE_AFFINITY_MASK=7",
    "ZE_ENABLE_PCI_ID_DEVICE_ORDER=0",
    "ONEAPI_DEVICE_SELECTOR=opencl:*",
    "BERTH_LEASE=1",
    "BERTH_DEVICES=nvidia7",
    "BERTH_DEVICE_NODES=/dev/nvidia7",
    "BERTH_CDI_DEVICES=berth/gpu=nvidia7",
    "BERTH_CPUS=7",
    "BERTH_SOCKET=/old",
    "BERTH_REPLICA=7",
    "HOME=/",
    NULL,
};

static const char *const nothing[] __attribute__((unused)) = {NULL};

/* A command's environment and what it was made from. */
struct launched {
    struct machine machine;
    struct launch_facts facts;
    struct string_list environment;
};

static inline struct launched leased(const char *ids, uint32_t vendors)
{
    struct launched launched = {.facts = {.lease = 12, .vendors = vendors}};

    machine_add_ids(&launched.machine, ids);
    return launched;
}

static inline void launch(struct launched *launched, const char *const *inherited)
{
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    string_list_finish(&launched->environment);
    launched->facts.devices = launched->machine.devices.items;
    launched->facts.device_count = launched->machine.devices.count;
    code = launch_environment(&launched->facts, (char *const *)inherited, &launched->environment,
                              &error);
    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    assert_null(launched->environment.items[launched->environment.count - 1]);
}

static inline void launched_finish(struct launched *launched)
{
    string_list_finish(&launched->environment);
    machine_finish(&launched->machine);
}

/* Returns the value of a variable, which must be set at most once; NULL: it is not set. */
static inline const char *value_of(const struct launched *launched, const char *name)
{
    const char *value = NULL;
    size_t length = strlen(name);

    for (char *const *entry = launched->environment.items; *entry != NULL; entry++) {
        if (strncmp(*entry, name, length) != 0 || (*entry)[length] != '=')
            continue;
        assert_null(value);
        value = *entry + length + 1;
    }
    return value;
}

static inline void check_value(const struct launched *launched, const char *name,
                               const char *wanted)
{
    const char *found = value_of(launched, name);

    if (wanted == NULL)
        assert_null(found);
    else
        assert_non_null(found);
    if (wanted != NULL)
        assert_string_equal(found, wanted);
}

#endif
