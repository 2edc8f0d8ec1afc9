/* SPDX-License-Identifier: Apache-2.0
 *
 * berth web: berth becomes the program berth-web.
 */
#include "base/count.h"
#include "base/error.h"
#include "cli/programs/program_options.h"
#include "cli/verbs.h"
#include "spec/option_types.h"

/* Appends the value; the member is a struct string_list. */
static int add_text(const struct option *option, void *member, const char *value,
                    struct berth_error *error)
{
    (void)option;
    return string_list_append(member, value) < 0 ? error_set_memory(error) : 0;
}

static const struct option web_rows[] = {
    {.name = "listen",
     .argument = "ADDRESS:PORT",
     .help = "listen here (default 127.0.0.1:7411); port 0: any free port",
     .offset = offsetof(struct web_options, listen),
     .parse = option_type_string},
    {.name = "token",
     .argument = "FILE",
     .help = "require this file's token; needed unless ADDRESS is loopback",
     .offset = offsetof(struct web_options, token),
     .parse = option_type_string},
    {.name = "host",
     .argument = "NAME",
     .help = "also answer requests for this host; may be repeated",
     .offset = offsetof(struct web_options, hosts),
     .parse = add_text},
    {.name = "job-mapping",
     .argument = "DIR",
     .help = "write the leases of each NVIDIA GPU here, for dcgm-exporter",
     .offset = offsetof(struct web_options, job_mapping),
     .parse = option_type_string},
    {.name = "inventory",
     .argument = "FILE",
     .help = "use the pool of this inventory file",
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
    .summary = "serve a live web page, and metrics for Prometheus",
    .description =
        "Serves a live page of devices, leases and the queue, and metrics for Prometheus at "
        "/metrics, until Ctrl-C. The page cannot change the pool. At a loopback address every user "
        "of this machine can read it; other addresses need a token.",
    .examples = "berth web\n"
                "berth web --listen 0.0.0.0:7411 --token token.txt\n",
    .sets = web_sets,
    .program = "berth-web",
};
