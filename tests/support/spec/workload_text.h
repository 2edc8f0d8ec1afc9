/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes all values of a spec file in one line, so that two files can be compared.
 */
#ifndef TESTS_WORKLOAD_TEXT_H
#define TESTS_WORKLOAD_TEXT_H

#include <string.h>

#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "spec/request_options.h"

static inline void write_word(struct text *out, const char *name, const char *value)
{
    if (value == NULL)
        return;
    text_append_format(out, "; %s ", name);
    utf8_append_inert(out, value);
}

static inline void write_flag(struct text *out, const char *name, bool value)
{
    if (value)
        text_append_format(out, "; %s", name);
}

static inline void write_request_words(const struct request *request, struct text *out)
{
    write_word(out, "name", request->name);
    write_word(out, "scheduling", choice_name(scheduling_names, (int)request->scheduling));
    write_word(out, "priority", choice_name(priority_names, (int)request->priority));
    write_word(out, "policy", request->policy);
    write_word(out, "affinity", request->affinity);
    write_word(out, "pipes", request->mps_pipe_dir);
    write_word(out, "logs", request->mps_log_dir);
    write_flag(out, "opportunistic", request->opportunistic);
    write_flag(out, "ranks", request->ranks);
    write_flag(out, "or cpu", request->or_cpu);
    if (request->wait.known)
        write_word(out, "wait", quantity_format_duration((int64_t)request->wait.value).text);
}

/* Writes the request and all other options. Notes are without the name of the file. */
static inline void write_workload_words(const struct request_options *options,
                                        const struct request *request, struct text *out)
{
    char **string;

    request_describe(request, out);
    write_request_words(request, out);
    write_word(out, "backend", choice_name(backend_names, (int)options->backend));
    if (options->master_port != 0)
        text_append_format(out, "; port %u", options->master_port);
    write_word(out, "interface", options->interface);
    if (options->rank_mask != RANK_MASK_ALL)
        write_word(out, "mask", choice_name(rank_mask_names, (int)options->rank_mask));
    write_flag(out, "label", options->label);
    write_flag(out, "pin", options->pin);
    write_flag(out, "uuid", options->uuid);
    vector_for_each (string, &options->command) {
        text_append(out, string == options->command.items ? "; command '" : " '");
        utf8_append_inert(out, *string);
        text_append_char(out, '\'');
    }
    vector_for_each (string, &options->notes)
        write_word(out, "note", strchr(*string, ':') + 1);
}

#endif
