/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_program.h"

#include <berth/error.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/mps/mps_rules.h"
#include "spec/configuration/configuration.h"

static void forget_path(struct mps_program *program)
{
    free(program->path);
    program->path = NULL;
}

/* Takes this path, if it can be executed. */
static bool try_path(struct mps_program *program, const char *path)
{
    const char *fault = configuration_program_fault(path);

    text_clear(&program->fault);
    forget_path(program);
    if (fault == NULL)
        program->path = strdup(path);
    if (program->path == NULL)
        text_append_format(&program->fault, "%s: %s", path,
                           fault != NULL ? fault : berth_error_describe(BERTH_ERROR_MEMORY));
    return program->path != NULL;
}

static void try_standard_directories(struct mps_program *program)
{
    for (const char *const *path = mps_rules_default_programs; *path != NULL; path++) {
        if (try_path(program, *path))
            return;
    }
    text_clear(&program->fault);
    text_append(&program->fault,
                MPS_PROGRAM_NAME ": not found in /usr/bin, /usr/local/bin, /bin or /usr/sbin "
                                 "(set mps_control in the configuration)");
}

const char *mps_program_find(struct mps_program *program, const char *named, int64_t now)
{
    if (program->searched_at != 0 && now - program->searched_at <= MPS_PROGRAM_KNOWN_FOR &&
        text_equals(program->named, named))
        return program->path;
    free(program->named);
    program->named = named == NULL ? NULL : strdup(named);
    program->searched_at = now;
    if (named != NULL)
        try_path(program, named);
    else
        try_standard_directories(program);
    return program->path;
}

void mps_program_finish(struct mps_program *program)
{
    forget_path(program);
    free(program->named);
    text_finish(&program->fault);
}
