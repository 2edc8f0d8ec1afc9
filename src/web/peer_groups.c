/* SPDX-License-Identifier: Apache-2.0 */
#include "web/peer_groups.h"

#include <stdlib.h>

#include "web/socket_owner.h"

struct peer peer_groups_identify(int questions, const struct subordinate_uids *subordinates,
                                 const struct listen_address *ours,
                                 const struct listen_address *address)
{
    struct peer peer = {.kind = PEER_USER, .address = *address};
    uint32_t uid;

    if (socket_owner_find(questions, &ours->any, &address->any, &uid))
        peer.uid = subordinate_uids_owner(subordinates, uid);
    else
        peer.kind = listen_address_is_loopback(address) ? PEER_LOCAL : PEER_HOST;
    return peer;
}

bool peer_groups_same(const struct peer *one, const struct peer *other)
{
    if (one->kind != other->kind)
        return false;
    switch (one->kind) {
    case PEER_USER:
        return one->uid == other->uid;
    case PEER_HOST:
        return listen_address_same_host(&one->address.any, &other->address.any);
    case PEER_LOCAL:
        break;
    }
    return true;
}

void peer_groups_init(struct peer_groups *groups)
{
    list_init(&groups->list);
}

static struct peer_group *find_group(const struct peer_groups *groups, const struct peer *peer)
{
    list_for_each (link, &groups->list) {
        struct peer_group *group = container_of(link, struct peer_group, link);

        if (peer_groups_same(&group->peer, peer))
            return group;
    }
    return NULL;
}

struct peer_group *peer_groups_largest(const struct peer_groups *groups, const struct peer *peer)
{
    const struct peer_group *own = find_group(groups, peer);
    struct peer_group *largest = NULL;

    list_for_each (link, &groups->list) {
        struct peer_group *group = container_of(link, struct peer_group, link);

        if (largest == NULL || group->count > largest->count)
            largest = group;
    }
    return largest == NULL || (own == NULL ? 0 : own->count) + 1 >= largest->count ? NULL : largest;
}

bool peer_groups_join(struct peer_groups *groups, const struct peer *peer,
                      struct peer_member *member)
{
    struct peer_group *group = find_group(groups, peer);

    if (group == NULL) {
        group = calloc(1, sizeof(*group));
        if (group == NULL)
            return false;
        group->peer = *peer;
        list_init(&group->members);
        list_append(&groups->list, &group->link);
    }
    list_append(&group->members, &member->link);
    group->count++;
    member->group = group;
    return true;
}

void peer_groups_leave(struct peer_member *member)
{
    struct peer_group *group = member->group;

    if (group == NULL)
        return;
    list_unlink(&member->link);
    member->group = NULL;
    group->count--;
    if (group->count > 0)
        return;
    list_unlink(&group->link);
    free(group);
}
