/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the calls that a double of a vendor's library has logged.
 */
#ifndef TESTS_DOUBLE_LOG_H
#define TESTS_DOUBLE_LOG_H

#include <stdio.h>
#include <string.h>

/* Returns how many lines of the double's log equal this one. */
static inline unsigned world_logged(const char *wanted)
{
    FILE *file = fopen("machine.log", "re");
    unsigned count = 0;
    char line[128];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        count += strcmp(line, wanted) == 0;
    }
    if (file != NULL)
        fclose(file);
    return count;
}

#endif
