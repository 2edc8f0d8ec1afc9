/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields that do not go together in a spec file, and the schema with these rules.
 */
#include "spec/workload.h"
#include "write_spec.h"

#define GIVEN(field)                             \
    {                                            \
        .path = (field), .test = CONDITION_GIVEN \
    }
#define LEFT_OUT(field)                             \
    {                                               \
        .path = (field), .test = CONDITION_LEFT_OUT \
    }
#define VALUED(field, condition, ...)                                         \
    {                                                                         \
        .path = (field), .test = (condition), .values = (const char *const[]) \
        {                                                                     \
            __VA_ARGS__, NULL                                                 \
        }                                                                     \
    }
#define ONE_OF(field, ...)       VALUED(field, CONDITION_ONE_OF, __VA_ARGS__)
#define ANOTHER(field, ...)      VALUED(field, CONDITION_ANOTHER, __VA_ARGS__)
#define NOT_GIVEN_AS(field, ...) VALUED(field, CONDITION_NOT_GIVEN_AS, __VA_ARGS__)
#define IS_TRUE(field)           ONE_OF(field, "true", "True", "TRUE")

static const struct movable gpu_block = {.path = "gpu", .elsewhere = "resources.gpu"};

const struct contradiction spec_rules[] = {
    {.sentence = "a spec file needs the field 'gpu' (gpu: {} requests one device)",
     .conditions = {LEFT_OUT("gpu"), LEFT_OUT("resources.gpu")}},
    {.sentence = "gpu: expected once, got at the top and below resources",
     .conditions = {GIVEN("gpu"), GIVEN("resources.gpu")}},
    {.sentence = "sharing: mps works on nvidia devices only",
     .conditions = {ONE_OF("gpu.sharing", "mps"), ANOTHER("gpu.vendor", "nvidia", "any")}},
    {.sentence = "sharing: mps gives one device to each process: use count 1 or distributed",
     .conditions = {ONE_OF("gpu.sharing", "mps"), ANOTHER("gpu.count", "1", "1-1"),
                    LEFT_OUT("gpu.distributed")}},
    {.sentence = "share: needs sharing mps or time-slice",
     .conditions = {GIVEN("gpu.share"), NOT_GIVEN_AS("gpu.sharing", "mps", "time-slice")}},
    {.sentence = "memory: needs sharing mps or time-slice",
     .conditions = {GIVEN("gpu.memory"), NOT_GIVEN_AS("gpu.sharing", "mps", "time-slice")}},
    {.sentence = "mps_pipe_dir: needs sharing mps",
     .conditions = {GIVEN("gpu.mps_pipe_dir"), NOT_GIVEN_AS("gpu.sharing", "mps")}},
    {.sentence = "mps_log_dir: needs sharing mps",
     .conditions = {GIVEN("gpu.mps_log_dir"), NOT_GIVEN_AS("gpu.sharing", "mps")}},
    {.sentence = "scheduling: expected gang or spread with distributed",
     .conditions = {GIVEN("gpu.distributed"), ONE_OF("gpu.scheduling", "best-effort")}},
    {.sentence = "replicas: expected 1 when count is all",
     .conditions = {ONE_OF("gpu.count", "all"), ANOTHER("replicas", "1")}},
    {.sentence = "priority: cannot be combined with opportunistic",
     .conditions = {GIVEN("priority"), IS_TRUE("opportunistic")}},
    {.sentence = "label: needs distributed or several replicas",
     .conditions = {IS_TRUE("label"), LEFT_OUT("gpu.distributed"), LEFT_OUT("replicas")}},
    {.sentence = "label: needs distributed or several replicas",
     .conditions = {IS_TRUE("label"), LEFT_OUT("gpu.distributed"), ONE_OF("replicas", "1")}},
    {0},
};

void spec_schema_write(struct text *out)
{
    struct json json;

    json_start(&json, out, JSON_INDENTED);
    schema_write(&json, &(struct schema_source){
                            .id = "urn:berth:spec:1",
                            .title = "berth spec file",
                            .description = "The devices and the command of a job, for berth run "
                                           "--spec and the other verbs that take a request.",
                            .record = &workload_record,
                            .contradictions = spec_rules,
                            .movable = &gpu_block,
                        });
    json_finish(&json);
}
