/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints a pattern of tools/spec/pattern.h, and the results of the parser to compare it with.
 *
 *     judge-pattern whole|elastic MIN MAX <TEXTS
 *
 * Prints the pattern, and then one line for each line that it reads: 1 if the parser accepts the
 * line and the value is within the bounds, else 0.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/text/quantity.h"
#include "model/request.h"
#include "pattern.h"

static bool takes_whole(const char *text, uint64_t min, uint64_t max)
{
    uint64_t number;

    return quantity_parse_number(text, min, max, &number, NULL) == 0;
}

static bool takes_elastic(const char *text, uint64_t min, uint64_t max)
{
    struct device_count count;

    return request_parse_device_count(text, &count, NULL) == 0 && strchr(text, '-') != NULL &&
           count.min >= min && count.max <= max;
}

static const struct kind {
    const char *name;
    void (*append)(struct text *out, uint64_t min, uint64_t max);
    bool (*takes)(const char *text, uint64_t min, uint64_t max);
} kinds[] = {
    {"whole", pattern_append_whole, takes_whole},
    {"elastic", pattern_append_elastic, takes_elastic},
};

static void judge(const struct kind *kind, uint64_t min, uint64_t max)
{
    struct text pattern = {0};
    char *line = NULL;
    size_t capacity = 0;
    ssize_t length;

    text_append(&pattern, PATTERN_BEGIN);
    kind->append(&pattern, min, max);
    text_append(&pattern, PATTERN_END);
    puts(text_string(&pattern));
    text_finish(&pattern);
    while ((length = getline(&line, &capacity, stdin)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = '\0';
        puts(kind->takes(line, min, max) ? "1" : "0");
    }
    free(line);
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < COUNT(kinds) && argc == 4; i++) {
        if (strcmp(kinds[i].name, argv[1]) == 0) {
            judge(&kinds[i], strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
            return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
        }
    }
    fprintf(stderr, "usage: judge-pattern whole|elastic MIN MAX <TEXTS\n");
    return EXIT_FAILURE;
}
