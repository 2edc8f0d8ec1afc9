/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/machine_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/utf8.h"
#include "spec/inventory.h"

int machine_source_open(struct machine_source *source, const char *inventory, const char *deadline,
                        struct berth_error *error)
{
    const char *path = inventory != NULL ? inventory : getenv("BERTH_INVENTORY");
    struct machine_source opened = {.is_virtual = path != NULL && *path != '\0'};
    int code;

    if (inventory != NULL && *inventory == '\0')
        return error_set(error, BERTH_ERROR_INVALID, "--inventory: expected a file, got nothing");
    if (deadline != NULL) {
        code = probe_deadline_parse(deadline, &opened.deadline, error);
        if (code < 0)
            return error_wrap(error, code, "--deadline");
    }
    if (opened.is_virtual)
        code = inventory_read(path, &opened.virtual.machine, error);
    else
        code = deadline == NULL ? probe_deadline(&opened.deadline, error) : 0;
    if (code == 0)
        *source = opened;
    return code;
}

void machine_source_close(struct machine_source *source)
{
    machine_report_finish(&source->virtual);
    probe_finish(&source->probe);
    *source = (struct machine_source){0};
}

int machine_source_scan(struct machine_source *source, struct machine_report *ret_report,
                        struct berth_error *error)
{
    struct probe_request request = {
        .deadline = (uint64_t)source->deadline,
        .without_processes = source->without_processes,
    };
    int code;

    if (source->is_virtual) {
        *ret_report = source->virtual;
        source->virtual = (struct machine_report){0};
        return 0;
    }
    code = probe_query(&source->probe, &request, ret_report, error);
    if (code == 0 || code == BERTH_ERROR_MEMORY)
        return code;
    if (error != NULL)
        error->code = BERTH_ERROR_IO;
    return BERTH_ERROR_IO;
}

void machine_source_write_problems(const struct problem_list *problems, const char *prefix,
                                   struct text *out)
{
    const struct problem *problem;

    vector_for_each (problem, problems) {
        text_append(out, prefix);
        utf8_append_inert(out, problem->backend == NULL ? "probe" : problem->backend);
        text_append(out, ": ");
        utf8_append_inert(out, problem->message == NULL ? "failed" : problem->message);
        text_append_char(out, '\n');
    }
}

int machine_source_sysroot(char **ret_prefix, struct berth_error *error)
{
    const char *given = getenv("BERTH_SYSROOT");
    char *prefix = given == NULL || *given == '\0' ? strdup("") : realpath(given, NULL);

    /* Accept a directory that does not exist: opening its files fails later. */
    if (prefix == NULL && given != NULL)
        prefix = strdup(given);
    if (prefix == NULL)
        return error_set_memory(error);
    if (strcmp(prefix, "/") == 0)
        *prefix = '\0';
    *ret_prefix = prefix;
    return 0;
}
