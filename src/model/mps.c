/* SPDX-License-Identifier: Apache-2.0 */
#include "model/mps.h"

static void append_directory(const struct mps_place *place, const char *named, const char *own_name,
                             struct device_id id, struct text *out)
{
    if (named == NULL) {
        text_append_format(out, "%s/%s/%s", place->root, device_id_format(id).text, own_name);
        return;
    }
    text_append(out, named);
    if (!place->only_one)
        text_append_format(out, "/%s", device_id_format(id).text);
}

void mps_directories(const struct mps_place *place, struct device_id id, struct text *pipe,
                     struct text *log)
{
    append_directory(place, place->request->mps_pipe_dir, "pipe", id, pipe);
    append_directory(place, place->request->mps_log_dir, "log", id, log);
}
