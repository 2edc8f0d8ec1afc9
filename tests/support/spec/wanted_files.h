/* SPDX-License-Identifier: Apache-2.0
 *
 * Files in tests/data with their expected result: in a comment in the first line, "# wanted: ...",
 * or, if the format has no comments, in a file beside it, x.wanted for x.json.
 */
#ifndef TESTS_WANTED_FILES_H
#define TESTS_WANTED_FILES_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"

/* Replaces `content` by the content of the file. */
static inline void read_whole(const char *path, struct text *content)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (file_read(path, 1 << 20, content, &error) < 0)
        fail_msg("%s", error.message);
}

/* Returns the expected result of the file. The caller frees it. */
static inline char *read_wanted(const char *path)
{
    static const char lead[] = "# wanted: ";
    struct text content = {0};
    struct text beside = {0};
    const char *line;
    char *wanted;

    read_whole(path, &content);
    if (strncmp(text_string(&content), lead, strlen(lead)) != 0) {
        text_append_bytes(&beside, path, (size_t)(strrchr(path, '.') - path));
        text_append(&beside, ".wanted");
        read_whole(text_string(&beside), &content);
        line = text_string(&content);
    } else {
        line = text_string(&content) + strlen(lead);
    }
    wanted = strndup(line, strcspn(line, "\n"));
    assert_non_null(wanted);
    text_finish(&beside);
    text_finish(&content);
    return wanted;
}

/* Changes into the directory of a file and returns the file's bare name. A long path would truncate
 * messages. */
static inline const char *enter_directory(const char *path)
{
    char *directory = strndup(path, (size_t)(strrchr(path, '/') - path));

    assert_non_null(directory);
    assert_int_equal(chdir(directory), 0);
    free(directory);
    return strrchr(path, '/') + 1;
}

/* Checks that the message is `name`, the bare name of the file `path`, followed by the expected
 * message. */
static inline void check_wanted_message(const char *path, const char *name, const char *message)
{
    char *wanted = read_wanted(name);
    const char *found = message + strlen(name);

    if (strncmp(message, name, strlen(name)) != 0)
        fail_msg("%s: expected a message that begins with %s, got \"%s\"", path, name, message);
    found += strspn(found, ": ");
    if (strcmp(found, wanted) != 0)
        fail_msg("%s: expected \"%s\", got \"%s\"", path, wanted, found);
    free(wanted);
}

#endif
