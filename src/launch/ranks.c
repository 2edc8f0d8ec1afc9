/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/ranks.h"

/* All ranks run on this host. */
#define ADDRESS "127.0.0.1"

uint64_t rank_plan_copies(const struct rank_plan *plan)
{
    return plan->ranks ? (uint64_t)plan->replicas * plan->each : plan->replicas;
}

static struct rank_facts make_rank_facts(const struct rank_plan *plan, uint32_t rank)
{
    return (struct rank_facts){
        .rank = rank,
        .world_size = plan->replicas * plan->each,
        .local_rank = rank % plan->each,
        .local_world_size = plan->each,
        .group_rank = rank / plan->each,
        .address = ADDRESS,
        .port = plan->port,
        .backend = plan->backend,
        .interface = plan->interface,
    };
}

struct rank_copy rank_plan_copy(const struct rank_plan *plan, uint32_t number)
{
    struct rank_copy copy = {.replica = number};

    if (plan->ranks) {
        copy.rank = make_rank_facts(plan, number);
        copy.replica = copy.rank.group_rank;
    }
    if (plan->devices == NULL)
        return copy;
    copy.devices = copy.near = plan->devices + (size_t)copy.replica * plan->each;
    copy.device_count = copy.near_count = plan->each;
    if (plan->ranks) {
        copy.near += copy.rank.local_rank;
        copy.near_count = 1;
    }
    if (plan->ranks && plan->only_own) {
        copy.devices = copy.near;
        copy.device_count = 1;
    }
    return copy;
}
