/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mps_directories.h"

#include "base/text/text.h"

bool mps_directories_single_device(const struct request *request)
{
    return !request->gpus.all && request->gpus.max <= 1 && request->replicas <= 1;
}

bool mps_directories_are_same(const struct request *one, const struct request *other)
{
    bool is_named = one->mps_pipe_dir != NULL || one->mps_log_dir != NULL;

    return text_equals(one->mps_pipe_dir, other->mps_pipe_dir) &&
           text_equals(one->mps_log_dir, other->mps_log_dir) &&
           (!is_named ||
            mps_directories_single_device(one) == mps_directories_single_device(other));
}

static void append_directory(const struct mps_directory_source *place, const char *named,
                             const char *own_name, struct device_id id, struct text *out)
{
    if (named == NULL) {
        text_append_format(out, "%s/%s/%s", place->root, device_id_format(id).text, own_name);
        return;
    }
    text_append(out, named);
    if (!mps_directories_single_device(place->request))
        text_append_format(out, "/%s", device_id_format(id).text);
}

void mps_directories(const struct mps_directory_source *place, struct device_id id,
                     struct text *pipe, struct text *log)
{
    append_directory(place, place->request->mps_pipe_dir, "pipe", id, pipe);
    append_directory(place, place->request->mps_log_dir, "log", id, log);
}
