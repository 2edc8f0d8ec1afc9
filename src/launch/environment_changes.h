/* SPDX-License-Identifier: Apache-2.0
 *
 * The variables of an environment that are ours to decide, and what becomes of each. Not for use by
 * two threads at once.
 */
#ifndef LAUNCH_ENVIRONMENT_CHANGES_H
#define LAUNCH_ENVIRONMENT_CHANGES_H

#include <stdbool.h>

#include "base/string_list.h"
#include "base/text/text.h"

/* Each is called in the environment as it is here. */
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

/* What becomes of each: as inherited, which zeroed memory says, removed, or set. */
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

/* Sets it to nothing; the value is to be appended to what is returned. */
struct text *environment_changes_begin_value(struct environment_changes *changes,
                                             enum variable variable);

/* Whether it was set, be it to nothing. */
bool environment_changes_is_set(const struct environment_changes *changes, enum variable variable);

/* Appends the inherited environment (ended by NULL) as it was changed, and a NULL entry. Takes what
 * was set. Fails with BERTH_ERROR_MEMORY, also when a value could not be put together; the list may
 * have grown then. */
int environment_changes_apply(struct environment_changes *changes, char *const *inherited,
                              struct string_list *environment);

void environment_changes_finish(struct environment_changes *changes);

#endif
