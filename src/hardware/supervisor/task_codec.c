/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/supervisor/task_codec.h"

#include <stdlib.h>

#include "base/error.h"
#include "codec/device_tags.h"

enum {
    FOUND_MAX = 65536,
    LINKS_MAX = 1 << 20,
    PATH_LENGTH_MAX = 4096,
    MESSAGE_MAX = 1024,
    AVOIDED_MAX = 4096
};

enum found_tag {
    FOUND_DEVICE = 1,
    FOUND_KEY = 2,
    FOUND_PATH = 3,
};

static const struct tagged_field found_fields[] = {
    [FOUND_DEVICE] = {TAGGED_MEMBER(device_finding, device, inner), .inner = &device_tagged,
                      .required = true},
    [FOUND_KEY] = {TAGGED_MEMBER(device_finding, key, text), .max = PATH_LENGTH_MAX},
    [FOUND_PATH] = {TAGGED_MEMBER(device_finding, path, text), .max = PATH_LENGTH_MAX},
};

static const struct tagged_table found_tagged = TAGGED_TABLE(device_finding, found_fields);

static const struct tagged_field avoided_process_fields[] = {
    [1] = {TAGGED_NUMBER(avoided_process, pid, UINT64_MAX)},
    [2] = {TAGGED_NUMBER(avoided_process, wholly, true)},
};

static const struct tagged_table avoided_process_tagged =
    TAGGED_TABLE(avoided_process, avoided_process_fields);

static const struct tagged_field avoided_user_fields[] = {
    [1] = {TAGGED_NUMBER(avoided_user, first, UINT32_MAX)},
    [2] = {TAGGED_NUMBER(avoided_user, last, UINT32_MAX)},
};

static const struct tagged_table avoided_user_tagged =
    TAGGED_TABLE(avoided_user, avoided_user_fields);

enum step_tag {
    STEP_TAG_KIND = 1,
    STEP_TAG_VENDOR = 2,
    STEP_TAG_ABOUT = 3,
    STEP_TAG_AVOIDED_PROCESSES = 4,
    STEP_TAG_AVOIDED_USERS = 5,
    STEP_TAG_AVOIDS_EVERYBODY = 6,
};

static const struct tagged_field step_fields[] = {
    [STEP_TAG_KIND] = {TAGGED_NUMBER(step, kind, STEP_DESCRIBE)},
    [STEP_TAG_VENDOR] = {TAGGED_NUMBER(step, vendor, VENDOR_DRI)},
    [STEP_TAG_ABOUT] = {TAGGED_MEMBER(step, about, items), .max = FOUND_MAX,
                        .inner = &found_tagged},
    [STEP_TAG_AVOIDED_PROCESSES] = {TAGGED_MEMBER(step, avoided.processes, items),
                                    .max = AVOIDED_MAX, .inner = &avoided_process_tagged},
    [STEP_TAG_AVOIDED_USERS] = {TAGGED_MEMBER(step, avoided.users, items), .max = AVOIDED_MAX,
                                .inner = &avoided_user_tagged},
    [STEP_TAG_AVOIDS_EVERYBODY] = {TAGGED_NUMBER(step, avoided.everybody, true)},
};

static const struct tagged_table step_tagged = TAGGED_TABLE(step, step_fields);

enum result_tag {
    RESULT_CODE = 1,
    RESULT_MESSAGE = 2,
    RESULT_FOUND = 3,
    RESULT_LINKS = 4,
    RESULT_PROBLEMS = 5,
};

static const struct tagged_field result_fields[] = {
    [RESULT_CODE] = {TAGGED_NUMBER(step_result, code, UINT64_MAX)},
    [RESULT_MESSAGE] = {TAGGED_MEMBER(step_result, message, words), .max = MESSAGE_MAX},
    [RESULT_FOUND] = {TAGGED_MEMBER(step_result, findings.found, items), .max = FOUND_MAX,
                      .inner = &found_tagged},
    [RESULT_LINKS] = {TAGGED_MEMBER(step_result, findings.links, items), .max = LINKS_MAX,
                      .inner = &link_tagged},
    [RESULT_PROBLEMS] = {TAGGED_MEMBER(step_result, findings.problems, items), .max = PROBLEMS_MAX,
                         .inner = &problem_tagged},
};

static const struct tagged_table result_tagged = TAGGED_TABLE(step_result, result_fields);

void task_codec_finish_step(struct step *step)
{
    finding_list_finish(&step->about);
    proc_watch_finish_avoided(&step->avoided);
}

void task_codec_finish_result(struct step_result *result)
{
    findings_finish(&result->findings);
    free(result->message);
    result->message = NULL;
}

int task_codec_encode_step(const struct step *step, struct text *out)
{
    return tagged_pack(&step_tagged, step, out);
}

int task_codec_encode_result(const struct step_result *result, struct text *out)
{
    return tagged_pack(&result_tagged, result, out);
}

int task_codec_decode_step(const unsigned char *bytes, size_t length, struct step *ret_step,
                           struct berth_error *error)
{
    struct step step = {0};
    int code = tagged_unpack(&step_tagged, bytes, length, &step, error);

    if (code == 0)
        *ret_step = step;
    return code;
}

int task_codec_decode_result(const unsigned char *bytes, size_t length, size_t about,
                             struct step_result *ret_result, struct berth_error *error)
{
    struct step_result result = {0};
    const struct link *link;
    int code = tagged_unpack(&result_tagged, bytes, length, &result, error);

    if (code < 0)
        return code;
    vector_for_each (link, &result.findings.links) {
        if (link->between[0] < link->between[1] && link->between[1] < about)
            continue;
        code = error_set(error, BERTH_ERROR_SYNTAX,
                         "expected links between two of %zu devices, got one between %zu and %zu",
                         about, link->between[0], link->between[1]);
        task_codec_finish_result(&result);
        return code;
    }
    *ret_result = result;
    return 0;
}
