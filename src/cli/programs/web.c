/* SPDX-License-Identifier: Apache-2.0
 *
 * berth web: becomes berth-web, which is a program of its own.
 */
#include "base/count.h"
#include "base/error.h"
#include "cli/programs/web_options.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

/* struct string_list: added to what is there. */
static int add_text(const struct option *option, void *member, const char *value,
                    struct berth_error *error)
{
    (void)option;
    return string_list_append(member, value) < 0 ? error_set_memory(error) : 0;
}

static const struct option web_rows[] = {
    {.name = "listen",
     .argument = "ADDRESS:PORT",
     .help = "where (127.0.0.1:7411); [::1]:7411 for IPv6; port 0 takes any that is free",
     .offset = offsetof(struct web_options, listen),
     .parse = option_type_string},
    {.name = "token",
     .argument = "FILE",
     .help = "who asks has to know what stands in this file; needed for any address that is not "
             "loopback",
     .offset = offsetof(struct web_options, token),
     .parse = option_type_string},
    {.name = "host",
     .argument = "NAME",
     .help = "also answer requests for this host, a name or an address, behind a proxy say; may be "
             "given several times",
     .offset = offsetof(struct web_options, hosts),
     .parse = add_text},
    {.name = "job-mapping",
     .argument = "DIR",
     .help = "keep a file there for each NVIDIA GPU, with the leases on it, for dcgm-exporter's "
             "DCGM_HPC_JOB_MAPPING_DIR",
     .offset = offsetof(struct web_options, job_mapping),
     .parse = option_type_string},
    {.name = "inventory",
     .argument = "FILE",
     .help = "the pool of this file's devices instead of the hardware's",
     .offset = offsetof(struct web_options, inventory),
     .parse = option_type_string},
};

const struct option_set web_option_set = {
    .heading = "Options",
    .options = web_rows,
    .count = COUNT(web_rows),
};

static const struct option_set *const web_sets[] = {&web_option_set, NULL};

const struct verb verb_web = {
    .name = "web",
    .usage = "[--listen ADDRESS:PORT] [options]",
    .summary = "show the pool in a browser, and to Prometheus",
    .description =
        "Serves a page that shows devices, leases and the queue as they change, and metrics for "
        "Prometheus at /metrics, until Ctrl-C. It only reads. On this machine anybody may look; "
        "other addresses need a token.",
    .sets = web_sets,
    .program = "berth-web",
};
