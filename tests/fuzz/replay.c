/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a fuzz target without a fuzzer, on its corpus and on variants that are the same in every
 * run. Prints TAP: for each file one line for the file itself and one for its variants. A finding
 * is a crash, an assertion or a sanitizer's report, so "not ok" only means that a file was not
 * replayed.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TRUNCATIONS = 64, FLIPS = 256 };

static unsigned tests;
static bool failed;

static void report(bool good, const char *path, const char *what)
{
    failed = failed || !good;
    printf("%s %u - %s%s\n", good ? "ok" : "not ok", ++tests, path, what);
    fflush(stdout);
}

/* Runs the target on a copy that is exactly as long as the input, so that a sanitizer sees a read
 * beyond its end. */
static bool replay(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (!copy)
        return false;
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return true;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Returns how many times longer than usual the run is (BERTH_TEST_SCALE). */
static unsigned long scale(void)
{
    const char *text = getenv("BERTH_TEST_SCALE");
    unsigned long factor = text ? strtoul(text, NULL, 10) : 1;
    return factor > 0 ? factor : 1;
}

static bool replay_truncated(const uint8_t *data, size_t size)
{
    size_t step = size / TRUNCATIONS + 1;
    for (size_t length = 0; length < size; length += step)
        if (!replay(data, length))
            return false;
    return true;
}

/* Changes one to four bytes at a time. About half of the new bytes have a meaning to parsers. */
static bool replay_flipped(uint8_t *data, size_t size)
{
    static const uint8_t telling[] = "\0\t\n\r \"#%'*+,-./09:;=[\\]{|}\x7f\x80\xc2\xe2\xf0\xff";
    uint64_t state = 0x9e3779b97f4a7c15U;
    unsigned long rounds = FLIPS * scale();
    for (unsigned long round = 0; size > 0 && round < rounds; round++) {
        struct {
            size_t at;
            uint8_t was;
        } changes[4];
        size_t count = 1 + next_random(&state) % 4;
        for (size_t i = 0; i < count; i++) {
            changes[i].at = next_random(&state) % size;
            changes[i].was = data[changes[i].at];
            uint64_t draw = next_random(&state);
            data[changes[i].at] =
                draw & 1 ? telling[(draw >> 8) % (sizeof(telling) - 1)] : (uint8_t)(draw >> 8);
        }
        bool good = replay(data, size);
        for (size_t i = count; i-- > 0;)
            data[changes[i].at] = changes[i].was;
        if (!good)
            return false;
    }
    return true;
}

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0;
    size_t room = 0;
    bool good = file != NULL;
    while (good && !feof(file)) {
        if (size == room) {
            room = room > 0 ? 2 * room : 4096;
            uint8_t *larger = realloc(data, room);
            good = larger != NULL;
            data = larger ? larger : data;
        }
        if (good)
            size += fread(data + size, 1, room - size, file);
        good = good && !ferror(file);
    }
    if (file)
        fclose(file);
    /* After a crash, the last line printed says which file it was. */
    printf("# %s\n", path);
    fflush(stdout);
    report(good && replay(data, size), path, "");
    report(good && replay_truncated(data, size) && replay_flipped(data, size), path, ", varied");
    free(data);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay_path(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        report(false, path, ": no such file");
        return;
    }
    if (!S_ISDIR(status.st_mode)) {
        replay_file(path);
        return;
    }
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_visible, alphasort);
    if (count <= 0)
        report(false, path, ": no file to replay");
    for (int i = 0; i < count; i++) {
        char *below = NULL;
        if (asprintf(&below, "%s/%s", path, entries[i]->d_name) >= 0)
            replay_path(below);
        else
            report(false, path, ": out of memory");
        free(below);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay_path(argv[i]);
    if (argc < 2)
        report(false, "no corpus given", "");
    printf("1..%u\n", tests);
    return failed ? 1 : 0;
}
