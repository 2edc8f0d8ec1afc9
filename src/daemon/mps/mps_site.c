/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_site.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/text.h"
#include "model/mps_directories.h"
#include "model/request.h"

void mps_site_append_root(const char *base, uint32_t uid, struct text *out)
{
    text_append_format(out, "%s/%u", base, uid);
}

static int find_directories(const struct mps_site_source *source, struct mps_site *site)
{
    struct text root = {0};
    struct text pipe = {0};
    struct text log = {0};

    mps_site_append_root(source->base, source->user.uid, &root);
    if (!text_failed(&root)) {
        mps_directories(&(struct mps_directory_source){text_string(&root), source->request},
                        source->device, &pipe, &log);
        site->pipe = text_detach(&pipe);
        site->log = text_detach(&log);
    }
    text_finish(&root);
    text_finish(&pipe);
    text_finish(&log);
    return site->pipe == NULL || site->log == NULL ? BERTH_ERROR_MEMORY : 0;
}

int mps_site_make(const struct mps_site_source *source, struct mps_site *ret_site,
                  struct berth_error *error)
{
    bool is_single = mps_directories_single_device(source->request);
    struct mps_site site = {
        .persona = source->user,
        .is_pipe_given = is_single && source->request->mps_pipe_dir != NULL,
        .is_log_given = is_single && source->request->mps_log_dir != NULL,
    };
    int code = find_directories(source, &site);

    if (code < 0)
        code = error_set_memory(error);
    else if (strlen(site.pipe) > MPS_DIRECTORY_MAX)
        code = error_set(error, BERTH_ERROR_RANGE, "%s: expected at most %d bytes, got %zu",
                         site.pipe, MPS_DIRECTORY_MAX, strlen(site.pipe));
    if (code < 0)
        mps_site_finish(&site);
    else
        *ret_site = site;
    return code;
}

void mps_site_finish(struct mps_site *site)
{
    free(site->pipe);
    free(site->log);
    *site = (struct mps_site){0};
}

bool mps_site_is_same(const struct mps_site *one, const struct mps_site *other)
{
    return one->persona.uid == other->persona.uid && strcmp(one->pipe, other->pipe) == 0 &&
           strcmp(one->log, other->log) == 0;
}
