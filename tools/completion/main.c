/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the completion file of one shell: its frame, with the tables in place of the line
 * "@tables@".
 *
 *     write-completion bash|fish|zsh FRAME
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "completion.h"

static const struct {
    const char *name;
    void (*write)(struct text *out);
} shells[] = {
    {"bash", write_bash},
    {"fish", write_fish},
    {"zsh", write_zsh},
};

static bool write_framed(FILE *frame, void write(struct text *out))
{
    struct text out = {0};
    char line[512];
    bool found = false;
    bool good;

    while (fgets(line, sizeof(line), frame) != NULL) {
        if (strcmp(line, "@tables@\n") == 0) {
            write(&out);
            found = true;
        } else {
            text_append(&out, line);
        }
    }
    good = found && !ferror(frame) && !text_failed(&out) &&
           fwrite(text_string(&out), 1, out.length, stdout) == out.length && fflush(stdout) == 0;
    text_finish(&out);
    return good;
}

int main(int argc, char **argv)
{
    FILE *frame = argc == 3 ? fopen(argv[2], "re") : NULL;
    bool good = false;

    if (frame == NULL) {
        fprintf(stderr, "usage: write-completion bash|fish|zsh FRAME\n");
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < COUNT(shells); i++) {
        if (strcmp(argv[1], shells[i].name) == 0)
            good = write_framed(frame, shells[i].write);
    }
    fclose(frame);
    if (!good)
        fprintf(stderr, "write-completion: cannot write the %s completion from %s\n", argv[1],
                argv[2]);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
