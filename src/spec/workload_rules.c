/* SPDX-License-Identifier: Apache-2.0
 *
 * What does not go together in a spec file, and what is worth a note.
 */
#include "spec/workload.h"

#define GIVEN(field)                             \
    {                                            \
        .path = (field), .test = CONDITION_GIVEN \
    }
#define LEFT_OUT(field)                             \
    {                                               \
        .path = (field), .test = CONDITION_LEFT_OUT \
    }
#define EMPTY(field)                             \
    {                                            \
        .path = (field), .test = CONDITION_EMPTY \
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

const struct movable workload_gpu = {.path = "gpu", .elsewhere = "resources.gpu"};

const struct contradiction workload_contradictions[] = {
    {.at = "gpu",
     .sentence = "a spec file needs the field 'gpu' (gpu: {} asks for one device)",
     .conditions = {LEFT_OUT("gpu"), LEFT_OUT("resources.gpu")}},
    {.at = "resources.gpu",
     .sentence = "gpu: expected once, got at the top and below resources",
     .conditions = {GIVEN("gpu"), GIVEN("resources.gpu")}},
    {.at = "gpu.sharing",
     .sentence = "sharing: mps works on nvidia devices only, got another vendor",
     .conditions = {ONE_OF("gpu.sharing", "mps"), ANOTHER("gpu.vendor", "nvidia", "any")}},
    {.at = "gpu.sharing",
     .sentence = "sharing: mps gives one device to each process: expected count 1 or distributed, "
                 "got several devices",
     .conditions = {ONE_OF("gpu.sharing", "mps"), ANOTHER("gpu.count", "1", "1-1"),
                    LEFT_OUT("gpu.distributed")}},
    {.at = "gpu.share",
     .sentence = "share: goes with sharing mps or time-slice, got neither",
     .conditions = {GIVEN("gpu.share"), NOT_GIVEN_AS("gpu.sharing", "mps", "time-slice")}},
    {.at = "gpu.memory",
     .sentence = "memory: goes with sharing mps or time-slice, got neither (min_free and "
                 "min_memory choose by memory)",
     .conditions = {GIVEN("gpu.memory"), NOT_GIVEN_AS("gpu.sharing", "mps", "time-slice")}},
    {.at = "gpu.mps_pipe_dir",
     .sentence = "mps_pipe_dir: goes with sharing mps, got another or none",
     .conditions = {GIVEN("gpu.mps_pipe_dir"), NOT_GIVEN_AS("gpu.sharing", "mps")}},
    {.at = "gpu.mps_log_dir",
     .sentence = "mps_log_dir: goes with sharing mps, got another or none",
     .conditions = {GIVEN("gpu.mps_log_dir"), NOT_GIVEN_AS("gpu.sharing", "mps")}},
    {.at = "gpu.scheduling",
     .sentence = "scheduling: ranks start together, so distributed needs gang or spread, got "
                 "best-effort",
     .conditions = {GIVEN("gpu.distributed"), ONE_OF("gpu.scheduling", "best-effort")}},
    {.at = "replicas",
     .sentence = "replicas: all devices can go to one replica only, got several",
     .conditions = {ONE_OF("gpu.count", "all"), ANOTHER("replicas", "1")}},
    {.at = "priority",
     .sentence = "priority: an opportunistic lease ranks below every priority, got both",
     .conditions = {GIVEN("priority"), IS_TRUE("opportunistic")}},
    {.at = "label",
     .sentence = "label: goes with distributed or several replicas, got neither",
     .conditions = {IS_TRUE("label"), LEFT_OUT("gpu.distributed"), LEFT_OUT("replicas")}},
    {.at = "label",
     .sentence = "label: goes with distributed or several replicas, got one replica",
     .conditions = {IS_TRUE("label"), LEFT_OUT("gpu.distributed"), ONE_OF("replicas", "1")}},
    {0},
};

const struct workload_note workload_notes[] = {
    {.sentence = "distributed: there is nothing in it, so no ranks are started ({} starts them)",
     .when = EMPTY("gpu.distributed")},
    {.sentence = "mode: has no effect on Linux", .when = GIVEN("gpu.mode")},
    {.sentence = "time_slice_index: is not needed, the pool counts its tenants itself",
     .when = GIVEN("gpu.time_slice_index")},
    {.sentence = "time_slicing_config_path: is not needed, the pool's configuration says how many "
                 "tenants a device has",
     .when = GIVEN("gpu.time_slicing_config_path")},
    {0},
};
