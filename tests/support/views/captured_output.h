/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a verb of berth in the test program. Its output goes to files in the working directory,
 * which must be temporary.
 */
#ifndef TESTS_CAPTURED_OUTPUT_H
#define TESTS_CAPTURED_OUTPUT_H

#include "support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/system/file.h"
#include "cli/verbs.h"

#define CAPTURED_OUTPUT "stdout"
#define CAPTURED_ERRORS "stderr"

enum { CAPTURED_WORDS_MAX = 16 };

/* Redirects a standard stream to a new file. Returns a copy of the old descriptor. */
static inline int captured_redirect(int descriptor, const char *path)
{
    int kept = dup(descriptor);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(kept >= 0 && file >= 0);
    assert_true(dup2(file, descriptor) >= 0);
    close(file);
    return kept;
}

static inline void captured_restore(int descriptor, int kept)
{
    dup2(kept, descriptor);
    close(kept);
}

/* Runs berth with these arguments, up to the first NULL. Calls `before` just before and `after`
 * just after it; both may be NULL. Returns the exit code. */
static inline int captured_run(const char *const *words, void (*before)(void *context),
                               void (*after)(void *context), void *context)
{
    char *argv[CAPTURED_WORDS_MAX + 2] = {(char *)"berth"};
    int output, errors, code;
    int argc = 1;

    for (; words[argc - 1] != NULL; argc++) {
        assert_true(argc <= CAPTURED_WORDS_MAX);
        argv[argc] = (char *)words[argc - 1];
    }
    fflush(stdout);
    output = captured_redirect(STDOUT_FILENO, CAPTURED_OUTPUT);
    errors = captured_redirect(STDERR_FILENO, CAPTURED_ERRORS);
    if (before != NULL)
        before(context);
    code = cli_main(argc, argv);
    if (after != NULL)
        after(context);
    fflush(stdout);
    captured_restore(STDOUT_FILENO, output);
    captured_restore(STDERR_FILENO, errors);
    return code;
}

/* Returns what was printed; the caller finishes the text. */
static inline struct text captured_read(const char *path)
{
    struct text content = {0};

    assert_int_equal(file_read(path, SIZE_MAX, &content, NULL), 0);
    return content;
}

#endif
