/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections by their origin: a local user, or another machine. Each origin has a fair part of all
 * connections, so that none can take them from the others.
 */
#ifndef WEB_PEER_GROUPS_H
#define WEB_PEER_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/system/subordinate_uids.h"
#include "web/listen_address.h"

enum peer_kind {
    PEER_HOST,  /* another machine */
    PEER_USER,  /* a user of this machine */
    PEER_LOCAL, /* a process of this machine whose user is unknown */
};

struct peer {
    enum peer_kind kind;
    uint32_t uid; /* of PEER_USER */
    struct listen_address address;
};

/* The connections of one origin. */
struct peer_group {
    struct list_link link;
    struct peer peer;
    struct list members; /* peer_member.link, the oldest first */
    size_t count;
};

/* A connection, as a part of its owner's structure. */
struct peer_member {
    struct list_link link;
    struct peer_group *group;
};

struct peer_groups {
    struct list list; /* peer_group.link */
};

/* Returns the origin of a connection. `questions` is a descriptor of socket_owner_open(), or -1.
 * Subordinate uids count as their owner. */
struct peer peer_groups_identify(int questions, const struct subordinate_uids *subordinates,
                                 const struct listen_address *ours,
                                 const struct listen_address *address);

/* Returns whether both are the same origin. */
bool peer_groups_same(const struct peer *one, const struct peer *other);

void peer_groups_init(struct peer_groups *groups);

/* Returns the group that must give up a connection before this peer gets one more: the largest
 * group, unless the peer already has as many connections. NULL: the peer has its fair part. */
struct peer_group *peer_groups_largest(const struct peer_groups *groups, const struct peer *peer);

/* Adds a member to the group of this peer. The caller keeps the member in place until
 * peer_groups_leave(). Returns false if memory runs out. */
bool peer_groups_join(struct peer_groups *groups, const struct peer *peer,
                      struct peer_member *member);
/* Removes a member, and frees the group after its last one. Does nothing if it never joined. */
void peer_groups_leave(struct peer_member *member);

#endif
