/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kept_commands.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"
#include "base/text/program_name.h"
#include "base/text/quantity.h"
#include "cli/state_home.h"

/* A file may be larger than full by the last lines of processes that write at the same time. */
#define FILE_MAX (2 * KEPT_COMMANDS_FULL)

static const char *const endings[] = {".old", ""};

/* Appends the name of the directory or of a file in it. */
static int append_path(struct text *out, const char *file, const char *ending)
{
    struct berth_error ignored = BERTH_ERROR_INIT;
    int code = state_home_append(out, &ignored);

    if (code < 0)
        return code;
    text_append_format(out, "/berth%s%s", file, ending);
    return text_failed(out) ? BERTH_ERROR_MEMORY : 0;
}

/* ---- Writing ---- */

static int open_file(const char *path)
{
    return open(
        path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
}

/* Opens the file, and creates missing directories. */
static int open_or_create(const char *path)
{
    struct berth_error ignored = BERTH_ERROR_INIT;
    struct text directory = {0};
    int descriptor = open_file(path);

    if (descriptor >= 0)
        return descriptor;
    if (append_path(&directory, "", "") == 0 &&
        state_home_make_directories(directory.bytes, &ignored) == 0)
        descriptor = open_file(path);
    text_finish(&directory);
    return descriptor;
}

/* Renames a full file. The lock and the second check ensure that only one of several processes
 * renames it. */
static void rotate_file(int descriptor, const char *path)
{
    struct text old = {0};
    struct stat opened;
    struct stat found;

    if (fstat(descriptor, &opened) < 0 || opened.st_size < KEPT_COMMANDS_FULL ||
        flock(descriptor, LOCK_EX | LOCK_NB) < 0)
        return;
    text_append_format(&old, "%s.old", path);
    if (!text_failed(&old) && stat(path, &found) == 0 && found.st_ino == opened.st_ino &&
        found.st_dev == opened.st_dev)
        rename(path, old.bytes);
    text_finish(&old);
}

/* Appends the command line without line breaks: a backslash and n, or two backslashes. */
static void append_escaped(struct text *out, const char *command)
{
    for (const char *at = command; *at != '\0'; at++) {
        if (*at == '\n')
            text_append(out, "\\n");
        else if (*at == '\\')
            text_append(out, "\\\\");
        else
            text_append_char(out, *at);
    }
}

void kept_commands_add(const struct pool_address *address, const struct client_claim *claim)
{
    const char *pool = claim->grant.about.pool;
    struct text path = {0};
    struct text line = {0};
    int descriptor = -1;

    if (address->own || pool == NULL || strpbrk(pool, " \n") != NULL ||
        claim->question.command == NULL)
        return;
    text_append_format(&line, "%s %" PRIu64 " ", pool, claim->id);
    append_escaped(&line, claim->question.command);
    text_append_char(&line, '\n');
    if (append_path(&path, "/commands", "") == 0 && !text_failed(&line))
        descriptor = open_or_create(path.bytes);
    if (descriptor >= 0) {
        file_write(descriptor, line.bytes, line.length);
        rotate_file(descriptor, path.bytes);
        close(descriptor);
    }
    text_finish(&line);
    text_finish(&path);
}

/* ---- Reading ---- */

static void unescape_command(char *command)
{
    char *to = command;

    for (const char *at = command; *at != '\0'; at++) {
        if (*at == '\\' && at[1] != '\0')
            *to++ = *++at == 'n' ? '\n' : *at;
        else
            *to++ = *at;
    }
    *to = '\0';
}

/* Adds the lease of one line. A damaged line is skipped. */
static int add_line(struct kept_commands *kept, char *line, struct berth_error *error)
{
    const char *pool = strsep(&line, " ");
    const char *id = line == NULL ? NULL : strsep(&line, " ");
    struct kept_command command = {0};
    struct kept_command *added = NULL;

    if (line == NULL || quantity_parse_number(id, 1, UINT64_MAX, &command.id, NULL) < 0)
        return 0;
    unescape_command(line);
    command.pool = strdup(pool);
    command.command = strdup(line);
    if (command.pool != NULL && command.command != NULL)
        added = vector_append(kept);
    if (added == NULL) {
        free(command.pool);
        free(command.command);
        return error_set_memory(error);
    }
    *added = command;
    return 0;
}

static int read_lines(struct kept_commands *kept, const char *path, struct berth_error *error)
{
    struct berth_error ignored = BERTH_ERROR_INIT;
    struct text content = {0};
    char *rest;
    char *line;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int code;

    if (descriptor < 0)
        return 0;
    code = file_read_open(descriptor, path, FILE_MAX, &content, &ignored);
    close(descriptor);
    if (code < 0)
        return code == BERTH_ERROR_MEMORY ? error_set_memory(error) : 0;
    rest = content.bytes;
    while (code == 0 && (line = strsep(&rest, "\n")) != NULL)
        code = add_line(kept, line, error);
    text_finish(&content);
    return code;
}

static int compare_commands(const void *one, const void *other)
{
    const struct kept_command *a = one;
    const struct kept_command *b = other;

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return strcmp(a->pool, b->pool);
}

int kept_commands_read(struct kept_commands *ret_kept, struct berth_error *error)
{
    struct kept_commands kept = {0};
    int code = 0;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]) && code == 0; i++) {
        struct text path = {0};

        if (append_path(&path, "/commands", endings[i]) == 0)
            code = read_lines(&kept, path.bytes, error);
        text_finish(&path);
    }
    if (code < 0) {
        kept_commands_finish(&kept);
        return code;
    }
    if (kept.count > 1)
        qsort(kept.items, kept.count, sizeof(*kept.items), compare_commands);
    *ret_kept = kept;
    return 0;
}

void kept_commands_finish(struct kept_commands *kept)
{
    struct kept_command *command;

    vector_for_each (command, kept) {
        free(command->pool);
        free(command->command);
    }
    vector_finish(kept);
}

static bool runs_same_program(const char *one, const char *other)
{
    size_t length;
    size_t other_length;
    const char *name = program_name_find(one, &length);
    const char *other_name = program_name_find(other, &other_length);

    return length == other_length && memcmp(name, other_name, length) == 0;
}

const char *kept_commands_find(const struct kept_commands *kept, const char *pool, uint64_t id,
                               const char *recorded)
{
    const struct kept_command wanted = {.pool = (char *)pool, .id = id};
    const struct kept_command *found = NULL;

    if (pool != NULL && recorded != NULL && kept->count > 0)
        found = bsearch(&wanted, kept->items, kept->count, sizeof(wanted), compare_commands);
    return found != NULL && runs_same_program(found->command, recorded) ? found->command : NULL;
}
