/* SPDX-License-Identifier: Apache-2.0
 *
 * Changes to the variables that berth sets or removes in an environment. Not thread-safe.
 */
#ifndef LAUNCH_ENVIRONMENT_CHANGES_H
#define LAUNCH_ENVIRONMENT_CHANGES_H

#include <stdbool.h>

#include "base/string_list.h"
#include "base/text/text.h"

/* The variables, by their names in the environment. */
#define VARIABLES(X)                     \
    X(CUDA_VISIBLE_DEVICES)              \
    X(CUDA_DEVICE_ORDER)                 \
    X(NVIDIA_VISIBLE_DEVICES)            \
    X(ROCR_VISIBLE_DEVICES)              \
    X(HIP_VISIBLE_DEVICES)               \
    X(GPU_DEVICE_ORDINAL)                \
    X(ZE_AFFINITY_MASK)                  \
    X(ZE_ENABLE_PCI_ID_DEVICE_ORDER)     \
    X(ZE_FLAT_DEVICE_HIERARCHY)          \
    X(ONEAPI_DEVICE_SELECTOR)            \
    X(CUDA_MPS_PIPE_DIRECTORY)           \
    X(CUDA_MPS_LOG_DIRECTORY)            \
    X(CUDA_MPS_ACTIVE_THREAD_PERCENTAGE) \
    X(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT)  \
    X(RANK)                              \
    X(WORLD_SIZE)                        \
    X(LOCAL_RANK)                        \
    X(LOCAL_WORLD_SIZE)                  \
    X(GROUP_RANK)                        \
    X(MASTER_ADDR)                       \
    X(MASTER_PORT)                       \
    X(NCCL_SOCKET_IFNAME)                \
    X(GLOO_SOCKET_IFNAME)                \
    X(BERTH_LEASE)                       \
    X(BERTH_DEVICES)                     \
    X(BERTH_DEVICE_NODES)                \
    X(BERTH_CDI_DEVICES)                 \
    X(BERTH_CPUS)                        \
    X(BERTH_SOCKET)                      \
    X(BERTH_INVENTORY)                   \
    X(BERTH_REPLICA)                     \
    X(BERTH_BACKEND)

enum variable {
    VARIABLE_NONE,
#define VARIABLE(name) name,
    VARIABLES(VARIABLE)
#undef VARIABLE
        VARIABLE_COUNT,
};

/* The change to each variable: none (zeroed memory), removed, or set. */
struct environment_changes {
    struct environment_change {
        bool is_ours;
        struct text assignment; /* NAME=VALUE; empty: removed */
    } of[VARIABLE_COUNT];
};

const char *launch_variable_name(enum variable variable);

void environment_changes_remove(struct environment_changes *changes, enum variable variable);

void environment_changes_set(struct environment_changes *changes, enum variable variable,
                             const char *value);
void environment_changes_set_number(struct environment_changes *changes, enum variable variable,
                                    uint64_t number);

/* Sets the variable to an empty value. The caller appends the value to the returned text. */
struct text *environment_changes_begin_value(struct environment_changes *changes,
                                             enum variable variable);

/* Returns true if the variable was set, even to an empty value. */
bool environment_changes_is_set(const struct environment_changes *changes, enum variable variable);

/* Appends the inherited environment (ended by NULL) with the changes, and a NULL item. Moves the
 * set values into the list. Fails with BERTH_ERROR_MEMORY, also if memory ran out earlier, when a
 * value was set; the list may have grown then. */
int environment_changes_apply(struct environment_changes *changes, char *const *inherited,
                              struct string_list *environment);

void environment_changes_finish(struct environment_changes *changes);

#endif
