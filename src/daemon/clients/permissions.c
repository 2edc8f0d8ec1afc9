/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/permissions.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/clients/clients.h"
#include "daemon/clients/connection.h"
#include "daemon/core/accounts.h"
#include "spec/configuration/configuration.h"

/* The maximum of Linux. */
enum { GROUPS_MAX = 65536 };

bool permissions_is_owner(const struct connection *connection)
{
    return connection->uid == 0 || connection->uid == connection->clients->settings.owner;
}

/* Asks the kernel once. If memory runs out, only the primary group counts. */
static void find_groups(struct connection *connection)
{
    socklen_t size = 0;
    uint32_t *groups;

    connection->groups_known = true;
    getsockopt(connection->watch.descriptor, SOL_SOCKET, SO_PEERGROUPS, NULL, &size);
    if (size == 0 || size > GROUPS_MAX * sizeof(*groups))
        return;
    groups = malloc(sizeof(*groups) + size);
    if (groups == NULL)
        return;
    groups[0] = connection->gid;
    if (getsockopt(connection->watch.descriptor, SOL_SOCKET, SO_PEERGROUPS, groups + 1, &size) <
        0) {
        free(groups);
        return;
    }
    connection->groups = groups;
    connection->group_count = 1 + size / sizeof(*groups);
}

const uint32_t *permissions_groups(struct connection *connection, size_t *ret_count)
{
    if (!connection->groups_known)
        find_groups(connection);
    *ret_count = connection->groups == NULL ? 1 : connection->group_count;
    return connection->groups == NULL ? &connection->gid : connection->groups;
}

static bool has_group(struct connection *connection, uint32_t wanted)
{
    size_t count;
    const uint32_t *groups = permissions_groups(connection, &count);

    for (size_t i = 0; i < count; i++) {
        if (groups[i] == wanted)
            return true;
    }
    return false;
}

static bool is_among(struct connection *connection, const struct principals *people)
{
    const uint32_t *group;

    if (configuration_number_list_has(&people->users, connection->uid))
        return true;
    vector_for_each (group, &people->groups) {
        if (has_group(connection, *group))
            return true;
    }
    return false;
}

bool permissions_is_admin(struct connection *connection)
{
    return permissions_is_owner(connection) ||
           is_among(connection, &connection->clients->settings.rules->admins);
}

bool permissions_may_decide(struct connection *connection, uint32_t uid)
{
    const struct accounts *accounts = connection->clients->settings.accounts;

    return connection->uid == uid ||
           (accounts != NULL &&
            subordinate_uids_owner(&accounts->ranges, uid) == connection->uid) ||
           permissions_is_admin(connection);
}

bool permissions_may_use_high(struct connection *connection)
{
    return permissions_is_admin(connection) ||
           is_among(connection, &connection->clients->settings.rules->high);
}

int64_t permissions_max_time(struct connection *connection)
{
    const struct configuration *rules = connection->clients->settings.rules;
    const struct device_limit *limit;
    int64_t by_group = 0;

    vector_for_each (limit, &rules->limits) {
        int64_t longest = limit->allowance.longest_time;

        if (longest == 0)
            continue;
        if (!limit->is_group && limit->key == connection->account)
            return longest;
        if (limit->is_group && longest > by_group && has_group(connection, limit->key))
            by_group = longest;
    }
    if (by_group != 0 || permissions_is_owner(connection))
        return by_group;
    return rules->each_user.longest_time != 0 ? rules->each_user.longest_time : rules->longest_time;
}
