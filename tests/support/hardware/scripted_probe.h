/* SPDX-License-Identifier: Apache-2.0
 *
 * Lets tests in C use daemons/scripted_probe.py in the place of berth-probe. The script is in the
 * test's own directory (support/temporary_directory.h).
 */
#ifndef TESTS_SCRIPTED_PROBE_H
#define TESTS_SCRIPTED_PROBE_H

#include "support/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/text/text.h"
#include "support/source_root.h"

/* Sets the probe's answers from the next request on. `script` is JSON, as scripted_probe.py
 * describes. */
static inline void probe_says(const char *script)
{
    FILE *file = fopen("script.new", "w");

    assert_non_null(file);
    assert_true(fputs(script, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename("script.new", "script"), 0);
}

/* Makes this process use the scripted probe. */
static inline void probe_script(const char *directory, const char *script)
{
    char *program = source_path("tests/support/daemons/scripted_probe.py");
    struct text path = {0};

    text_append_format(&path, "%s/script", directory);
    assert_int_equal(setenv("BERTH_PROBE", program, 1), 0);
    assert_int_equal(setenv("BERTH_PROBE_SCRIPT", text_string(&path), 1), 0);
    unsetenv("BERTH_PROBE_DEADLINE");
    unsetenv("BERTH_INVENTORY");
    text_finish(&path);
    free(program);
    probe_says(script);
}

/* Returns how many lines of its log begin with this text: "start " or "ask ". */
static inline size_t probe_count(const char *word)
{
    struct text log = {0};
    size_t count = 0;

    if (file_read("script.log", 1 << 20, &log, NULL) == 0) {
        for (const char *line = text_string(&log); *line != '\0';) {
            count += strncmp(line, word, strlen(word)) == 0;
            line += strcspn(line, "\n");
            line += *line == '\n';
        }
    }
    text_finish(&log);
    return count;
}

/* Returns whether a probe that was started still runs. Probes are not children of this process. */
static inline bool probe_runs(void)
{
    struct text log = {0};
    bool runs = false;

    assert_int_equal(file_read("script.log", 1 << 20, &log, NULL), 0);
    for (const char *at = text_string(&log); (at = strstr(at, "start ")) != NULL; at++) {
        pid_t pid = (pid_t)strtol(at + strlen("start "), NULL, 10);
        char path[64];
        char buffer[256] = "";
        FILE *file;

        /* A zombie has ended, even if its new parent has not reaped it yet. */
        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        file = fopen(path, "r");
        if (file == NULL)
            continue;
        if (fgets(buffer, sizeof(buffer), file) != NULL && strrchr(buffer, ')') != NULL)
            runs |= strncmp(strrchr(buffer, ')'), ") Z", 3) != 0;
        fclose(file);
    }
    text_finish(&log);
    return runs;
}

#endif
