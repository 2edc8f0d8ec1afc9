/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a spec file, in the order of docs/SPEC.md.
 */
#include "base/count.h"
#include "spec/workload.h"
#include "spec/workload_types.h"

enum { MODE_UNSAID, MODE_NATIVE, MODE_VM };

static const struct choice mode_names[] = {
    {"native", MODE_NATIVE},
    {"vm", MODE_VM},
    {0},
};

#define WORKLOAD(member) .offset = offsetof(struct workload, member)
#define OPTIONS(member)  WORKLOAD(options.member)
#define REQUEST(member)  OPTIONS(request.member)

static const struct field distributed_fields[] = {
    {.name = "backend",
     .type = &field_choice,
     OPTIONS(backend),
     .choices = backend_names,
     .help = "The library that ranks use to communicate; the command gets it in BERTH_BACKEND.",
     .default_text = "nccl",
     .example = "gloo"},
    {.name = "master_port",
     .type = &field_number32,
     OPTIONS(master_port),
     .min = 1,
     .max = UINT16_MAX,
     .help = "The port where the ranks meet; the command gets it in MASTER_PORT.",
     .default_text = "29500, or a free port if that one is in use",
     .example = "29500"},
    {.name = "interface",
     .type = &field_text,
     OPTIONS(interface),
     .max = INTERFACE_MAX,
     .help = "The network interface for NCCL and Gloo.",
     .default_text = "their own choice",
     .example = "eth0"},
    {.name = "rank_mask",
     .type = &field_choice,
     OPTIONS(rank_mask),
     .choices = rank_mask_names,
     .help = "The devices that a rank sees: all devices of its replica, or only its own.",
     .default_text = "all",
     .example = "one"},
};

/* Requests ranks, even if the block is empty ({}). */
static int apply_distributed(const struct field_reading *reading, const struct document_node *node,
                             void *target)
{
    struct workload *workload = target;

    (void)reading;
    (void)node;
    workload->options.request.ranks = true;
    return 0;
}

static const struct record distributed_record = {
    .what = "distributed",
    .fields = distributed_fields,
    .field_count = COUNT(distributed_fields),
    .check = apply_distributed,
};

static const struct field gpu_fields[] = {
    {.name = "count",
     .type = &workload_count,
     REQUEST(gpus),
     .help = "The number of devices of each replica: a number, a range such as 2-4 to get as many "
             "as are free, or all.",
     .default_text = "1",
     .example = "4"},
    {.name = "vendor",
     .type = &field_text,
     WORKLOAD(vendor),
     .help = "The vendor: nvidia, amd, intel or apple. With any, a replica may get devices of "
             "several vendors. Each other name, such as dri, means devices that have just a DRI "
             "render node.",
     .default_text = "nvidia",
     .example = "amd"},
    {.name = "model",
     .type = &workload_models,
     REQUEST(model),
     .help = "Only devices whose model name contains this text, in upper or lower case. Several "
             "texts have vertical bars between them.",
     .default_text = "any model",
     .example = "H100"},
    {.name = "mode",
     .type = &field_choice,
     WORKLOAD(mode),
     .choices = mode_names,
     .help = "How macOS gives access to Apple devices. Accepted for compatibility and ignored.",
     .example = "native"},
    {.name = "scheduling",
     .type = &field_choice,
     REQUEST(scheduling),
     .choices = scheduling_names,
     .help = "How replicas are granted: each on its own (best-effort), all at once (gang), or all "
             "at once and far from each other (spread).",
     .default_text = "best-effort; gang with distributed",
     .example = "gang"},
    {.name = "distributed",
     .type = &field_record,
     .record = &distributed_record,
     .help = "Starts one process per device over all replicas, with RANK, WORLD_SIZE and the other "
             "variables of distributed programs. {} uses all defaults.",
     .default_text = "one process per replica",
     .example = "{backend: nccl}"},
    {.name = "sharing",
     .type = &field_choice,
     REQUEST(sharing),
     .choices = sharing_names,
     .help = "Whether the job shares its devices with others, and how.",
     .default_text = "exclusive",
     .example = "time-slice"},
    {.name = "share",
     .type = &workload_share,
     REQUEST(share),
     .help = "The fraction of a shared device: above 0 and up to 1, rounded to millionths.",
     .default_text = "an equal part for each tenant",
     .example = "0.25"},
    {.name = "memory",
     .type = &workload_size,
     REQUEST(memory),
     .min = 1,
     .help =
         "The memory to reserve on each shared device: bytes, or a number below 1000T with a unit.",
     .default_text = "none",
     .example = "40GiB"},
    {.name = "mps_pipe_dir",
     .type = &workload_directory,
     REQUEST(mps_pipe_dir),
     .max = REQUEST_DIRECTORY_MAX,
     .help = "The directory of the MPS pipes: an absolute path.",
     .default_text = "a directory of the pool's own",
     .example = "/tmp/mps/pipe"},
    {.name = "mps_log_dir",
     .type = &workload_directory,
     REQUEST(mps_log_dir),
     .max = REQUEST_DIRECTORY_MAX,
     .help = "The directory of the MPS logs: an absolute path.",
     .default_text = "a directory of the pool's own",
     .example = "/tmp/mps/log"},
    {.name = "time_slice_index",
     .type = &field_number,
     WORKLOAD(time_slice_index),
     .max = UINT32_MAX,
     .help = "Accepted for compatibility and ignored: the pool counts its tenants itself.",
     .example = "0"},
    {.name = "time_slicing_config_path",
     .type = &field_text,
     WORKLOAD(time_slicing_config_path),
     .max = 4095,
     .help = "Accepted for compatibility and ignored: the pool's configuration sets the number of "
             "tenants.",
     .example = "/etc/time-slicing.yaml"},
    {.name = "min_free",
     .type = &workload_size,
     REQUEST(min_free),
     .help = "Only devices with at least this much free memory: bytes, or a number below 1000T "
             "with a unit.",
     .default_text = "any",
     .example = "20GiB"},
    {.name = "min_memory",
     .type = &workload_size,
     REQUEST(min_memory),
     .help = "Only devices with at least this much memory in total.",
     .default_text = "any",
     .example = "80GiB"},
    {.name = "min_cap",
     .type = &workload_capability,
     REQUEST(min_cap),
     .help = "Only devices with at least this compute capability, in quotes.",
     .default_text = "any",
     .example = "\"8.0\""},
    {.name = "device",
     .type = &workload_device_ids,
     REQUEST(wanted),
     .help = "Only these devices: a list of ids, or a text with commas between them.",
     .default_text = "any",
     .example = "[nvidia0, nvidia1]"},
    {.name = "avoid",
     .type = &workload_device_ids,
     REQUEST(avoided),
     .help = "Not these devices, if others match.",
     .default_text = "none",
     .example = "nvidia0,nvidia1"},
    {.name = "policy",
     .type = &field_text,
     REQUEST(policy),
     .help = "The placement policy, which chooses among the devices that match (see PLACEMENT.md).",
     .default_text = "the pool's default",
     .example = "best-available"},
    {.name = "affinity",
     .type = &field_text,
     REQUEST(affinity),
     .help = "Among equal devices, prefers those that served this key last.",
     .default_text = "the user's own",
     .example = "llama-70b"},
};

static const struct record gpu_record = {
    .what = "gpu",
    .fields = gpu_fields,
    .field_count = COUNT(gpu_fields),
};

static const struct field resources_fields[] = {
    {.name = "gpu",
     .type = &field_record,
     .record = &gpu_record,
     .help = "The same as gpu at the top.",
     .example = "{count: 1}"},
};

static const struct record resources_record = {
    .what = "resources",
    .fields = resources_fields,
    .field_count = COUNT(resources_fields),
};

static const struct field workload_fields[] = {
    {.name = "name",
     .type = &field_text,
     REQUEST(name),
     .help = "The name of the job in lists.",
     .default_text = "none",
     .example = "finetune"},
    {.name = "replicas",
     .type = &field_number32,
     REQUEST(replicas),
     .min = 1,
     .max = REQUEST_COUNT_MAX,
     .help = "The number of copies of the command, each with its own devices.",
     .default_text = "1",
     .example = "2"},
    {.name = "gpu",
     .type = &field_record,
     .record = &gpu_record,
     .help = "The devices of each replica. {} requests one device.",
     .example = "{count: 4, model: H100}"},
    {.name = "resources",
     .type = &field_record,
     .record = &resources_record,
     .help = "Another place for gpu, as in ZLayer.",
     .example = "{gpu: {count: 1}}"},
    {.name = "priority",
     .type = &field_choice,
     REQUEST(priority),
     .choices = priority_names,
     .help = "The priority class in the queue.",
     .default_text = "normal",
     .example = "low"},
    {.name = "opportunistic",
     .type = &field_boolean,
     REQUEST(opportunistic),
     .help = "Uses idle devices, and gives them back when another job needs them.",
     .default_text = "false",
     .example = "true"},
    {.name = "time",
     .type = &workload_duration,
     REQUEST(time),
     .min = 1,
     .help =
         "The time limit; the job is stopped after this long: seconds, or a duration with units.",
     .default_text = "the pool's default",
     .example = "8h"},
    {.name = "wait",
     .type = &workload_duration,
     REQUEST(wait),
     .help = "Gives up if the devices are not granted within this time; 0 does not wait.",
     .default_text = "no limit",
     .example = "30m"},
    {.name = "or_cpu",
     .type = &field_boolean,
     REQUEST(or_cpu),
     .help = "Runs on the CPU, with all devices hidden, if no device can ever match.",
     .default_text = "false",
     .example = "true"},
    {.name = "uuid",
     .type = &field_boolean,
     OPTIONS(uuid),
     .help = "Names devices by UUID, not by index, in variables such as CUDA_VISIBLE_DEVICES.",
     .default_text = "false",
     .example = "true"},
    {.name = "pin",
     .type = &field_boolean,
     OPTIONS(pin),
     .help = "Runs the command on the CPUs near its devices, if these are known.",
     .default_text = "false",
     .example = "true"},
    {.name = "label",
     .type = &field_boolean,
     OPTIONS(label),
     .help = "Starts each output line with the number of its rank or replica.",
     .default_text = "false",
     .example = "true"},
    {.name = "command",
     .type = &workload_command,
     OPTIONS(command),
     .help = "The program and its arguments; a text alone is a program without arguments. No shell "
             "is used.",
     .default_text = "the one on the command line",
     .example = "[python, train.py]"},
};

const struct record workload_record = {
    .what = "a spec file",
    .fields = workload_fields,
    .field_count = COUNT(workload_fields),
};

const struct workload_note workload_notes[] = {
    {"distributed", true, "distributed: is empty, so no ranks are started ({} starts them)"},
    {"mode", false, "mode: has no effect on Linux"},
    {"time_slice_index", false,
     "time_slice_index: is ignored, because the pool counts its tenants itself"},
    {"time_slicing_config_path", false,
     "time_slicing_config_path: is ignored, because the pool's configuration sets the number of "
     "tenants"},
    {0},
};
