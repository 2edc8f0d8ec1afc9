/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may share a device by MPS with whom: one control daemon serves a device, as one user and in
 * one pair of directories. What has the same of both is a domain, and has a number.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/state.h"
#include "model/mps.h"

/* Its members are where the domain's are. */
static int copy_directories(struct request *to, const struct request *from)
{
    request_init(to);
    to->gpus = from->gpus;
    to->replicas = from->replicas;
    to->mps_pipe_dir = from->mps_pipe_dir == NULL ? NULL : strdup(from->mps_pipe_dir);
    to->mps_log_dir = from->mps_log_dir == NULL ? NULL : strdup(from->mps_log_dir);
    if ((from->mps_pipe_dir != NULL && to->mps_pipe_dir == NULL) ||
        (from->mps_log_dir != NULL && to->mps_log_dir == NULL)) {
        request_finish(to);
        return BERTH_ERROR_MEMORY;
    }
    return 0;
}

/* A domain that nobody refers to, made when there is none; NULL: no memory. */
static struct mps_domain *find_spare(struct engine *engine)
{
    struct mps_domain *domain;

    vector_for_each (domain, &engine->domains) {
        if (domain->references == 0)
            return domain;
    }
    return vector_append(&engine->domains);
}

int domain_join(struct engine_request *request)
{
    struct engine *engine = request->engine;
    struct mps_domain *domain;

    if (request->what.sharing != SHARING_MPS)
        return 0;
    vector_for_each (domain, &engine->domains) {
        if (domain->references > 0 && domain->uid == request->uid &&
            mps_is_together(&domain->what, &request->what))
            break;
    }
    if (domain == engine->domains.items + engine->domains.count) {
        domain = find_spare(engine);
        if (domain == NULL || copy_directories(&domain->what, &request->what) < 0)
            return BERTH_ERROR_MEMORY;
        domain->uid = request->uid;
    }
    domain->references++;
    request->domain = (uint32_t)(domain - engine->domains.items) + 1;
    return 0;
}

void domain_leave(struct engine_request *request)
{
    struct mps_domain *domain;

    if (request->domain == 0)
        return;
    domain = &request->engine->domains.items[request->domain - 1];
    if (--domain->references == 0)
        request_finish(&domain->what);
    request->domain = 0;
}

uint32_t domain_uid(const struct engine *engine, uint32_t domain)
{
    return domain == 0 ? 0 : engine->domains.items[domain - 1].uid;
}

static bool is_same_name(const char *one, const char *other)
{
    return one != NULL && other != NULL && strcmp(one, other) == 0;
}

/* Whether control daemons of the two would meet in a directory wherever their devices are. */
static bool collides(const struct mps_domain *one, const struct mps_domain *other)
{
    return mps_is_only_one(&one->what) && mps_is_only_one(&other->what) &&
           (is_same_name(one->what.mps_pipe_dir, other->what.mps_pipe_dir) ||
            is_same_name(one->what.mps_log_dir, other->what.mps_log_dir));
}

static bool is_named_for_one(const struct request *what)
{
    return (what->mps_pipe_dir != NULL || what->mps_log_dir != NULL) && mps_is_only_one(what);
}

uint32_t domain_only_slot(const struct engine_request *request, const struct usage *usage)
{
    const struct engine *engine = request->engine;
    const struct mps_domain *own;
    uint32_t only = DOMAIN_ANY_SLOT;

    if (request->domain == 0 || !is_named_for_one(&request->what))
        return DOMAIN_ANY_SLOT;
    own = &engine->domains.items[request->domain - 1];
    for (uint32_t slot = 0; slot < engine->machine.devices.count; slot++) {
        const struct usage *there =
            usage != NULL ? &usage[slot] : &request->scope->ledger[slot].usage;

        if (there->brief.tenants == 0 || there->brief.sharing != SHARING_MPS)
            continue;
        if (there->domain == request->domain && only == DOMAIN_ANY_SLOT)
            only = slot;
        else if (collides(own, &engine->domains.items[there->domain - 1]))
            only = DOMAIN_NO_SLOT;
    }
    return only;
}
