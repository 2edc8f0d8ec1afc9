/* SPDX-License-Identifier: Apache-2.0
 *
 * Domains: requests that may share a device by MPS with each other (FAIRNESS.md section 10). One
 * control daemon serves a device, as one user and in one pair of directories. Requests with the
 * same user and directories have the same domain.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"
#include "model/mps_directories.h"

/* Copies the members that determine the directories. */
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

/* Returns a domain without references, a new one if there is none; NULL: no memory. */
static struct mps_domain *find_spare_domain(struct engine *engine)
{
    struct mps_domain *domain;

    vector_for_each (domain, &engine->domains) {
        if (domain->references == 0)
            return domain;
    }
    return vector_append(&engine->domains);
}

/* Returns the domain that the request belongs to; NULL: there is none yet. */
static struct mps_domain *find_domain(const struct engine_request *request)
{
    struct mps_domain *domain;

    vector_for_each (domain, &request->engine->domains) {
        if (domain->references > 0 && domain->uid == request->uid &&
            mps_directories_are_same(&domain->what, &request->what))
            return domain;
    }
    return NULL;
}

int mps_domain_join(struct engine_request *request)
{
    struct engine *engine = request->engine;
    struct mps_domain *domain;

    if (request->what.sharing != SHARING_MPS)
        return 0;
    domain = find_domain(request);
    if (domain == NULL) {
        domain = find_spare_domain(engine);
        if (domain == NULL || copy_directories(&domain->what, &request->what) < 0)
            return BERTH_ERROR_MEMORY;
        domain->uid = request->uid;
    }
    domain->references++;
    request->domain = (uint32_t)(domain - engine->domains.items) + 1;
    return 0;
}

void mps_domain_leave(struct engine_request *request)
{
    struct mps_domain *domain;

    if (request->domain == 0)
        return;
    domain = &request->engine->domains.items[request->domain - 1];
    if (--domain->references == 0)
        request_finish(&domain->what);
    request->domain = 0;
}

uint32_t mps_domain_uid(const struct engine *engine, uint32_t domain)
{
    return domain == 0 ? 0 : engine->domains.items[domain - 1].uid;
}
