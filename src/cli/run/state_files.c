/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/state_files.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "cli/state_home.h"

enum { POOL_MAX = 64, EXIT_FILE_MAX = 16, EXIT_CODE_MAX = 255 };

/* Returns true if the pool's name, which the daemon sends, is safe as a directory name. */
static bool is_good_name(const char *pool)
{
    size_t length = strnlen(pool, POOL_MAX + 1);

    if (length == 0 || length > POOL_MAX)
        return false;
    for (const char *at = pool; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && *at != '-' && *at != '_')
            return false;
    }
    return true;
}

int state_files_pool(struct session *session, char **ret_pool, struct berth_error *error)
{
    struct wire_message question = {.type = WIRE_HELLO};
    struct wire_message answer;
    int code = session_request(session, &question, WIRE_POOL, &answer, error);

    if (code < 0)
        return code;
    if (answer.about.pool == NULL || !is_good_name(answer.about.pool)) {
        code = error_set(error, BERTH_ERROR_SYNTAX,
                         "cannot find the files of jobs: the daemon sent the pool name %s",
                         quote(answer.about.pool == NULL ? "" : answer.about.pool).text);
    } else {
        *ret_pool = answer.about.pool;
        answer.about.pool = NULL;
    }
    wire_message_finish(&answer);
    return code;
}

/* Makes the name directory/ID.ending. Returns NULL if memory runs out. */
static char *name_file(const char *directory, uint64_t id, const char *ending)
{
    struct text name = {0};

    text_append_format(&name, "%s/%" PRIu64 ".%s", directory, id, ending);
    return text_detach(&name);
}

int state_files_find(const char *pool, uint64_t id, struct state_files *ret_files,
                     struct berth_error *error)
{
    struct state_files files = {0};
    struct text directory = {0};
    int code = state_home_append(&directory, error);

    if (code < 0) {
        text_finish(&directory);
        return code;
    }
    text_append_format(&directory, "/berth/%s", pool);
    files.directory = text_detach(&directory);
    if (files.directory != NULL) {
        files.log = name_file(files.directory, id, "log");
        files.exit = name_file(files.directory, id, "exit");
    }
    if (files.log == NULL || files.exit == NULL) {
        state_files_finish(&files);
        return error_set_memory(error);
    }
    *ret_files = files;
    return 0;
}

void state_files_finish(struct state_files *files)
{
    free(files->directory);
    free(files->log);
    free(files->exit);
    *files = (struct state_files){0};
}

int state_files_create_log(const struct state_files *files, int *ret_descriptor,
                           struct berth_error *error)
{
    int code = state_home_make_directories(files->directory, error);
    int descriptor;

    if (code < 0)
        return code;
    descriptor = open(files->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
    if (descriptor < 0)
        return error_set_errno(error, errno, "cannot create %s", files->log);
    *ret_descriptor = descriptor;
    return 0;
}

int state_files_write_exit(const struct state_files *files, int exit_code,
                           struct berth_error *error)
{
    struct text unfinished = {0};
    int code = 0;
    FILE *file;

    text_append_format(&unfinished, "%s.new", files->exit);
    if (text_failed(&unfinished))
        return error_set_memory(error);
    file = fopen(unfinished.bytes, "we");
    if (file == NULL)
        code = error_set_errno(error, errno, "cannot create %s", unfinished.bytes);
    if (file != NULL && fprintf(file, "%d\n", exit_code) < 0)
        code = error_set_errno(error, errno, "cannot write %s", unfinished.bytes);
    if (file != NULL && fclose(file) != 0 && code == 0)
        code = error_set_errno(error, errno, "cannot write %s", unfinished.bytes);
    if (code == 0 && rename(unfinished.bytes, files->exit) < 0)
        code = error_set_errno(error, errno, "cannot create %s", files->exit);
    if (code < 0 && file != NULL)
        unlink(unfinished.bytes);
    text_finish(&unfinished);
    return code;
}

int state_files_read_exit(const struct state_files *files, int *ret_exit_code,
                          struct berth_error *error)
{
    struct text content = {0};
    uint64_t number;
    int code = file_read(files->exit, EXIT_FILE_MAX, &content, error);

    if (code < 0)
        return code;
    if (content.length > 0 && content.bytes[content.length - 1] == '\n')
        content.bytes[content.length - 1] = '\0';
    code = quantity_parse_number(text_string(&content), 0, EXIT_CODE_MAX, &number, error);
    text_finish(&content);
    if (code < 0)
        return error_wrap(error, BERTH_ERROR_SYNTAX, "%s", files->exit);
    *ret_exit_code = (int)number;
    return 0;
}
