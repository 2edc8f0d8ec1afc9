/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints docs/SPEC.md: `make docs` keeps it there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "spec/workload.h"

int main(void)
{
    struct text document = {0};
    bool good;

    workload_write_document(&document);
    good = !text_failed(&document) && fputs(text_string(&document), stdout) >= 0 &&
           fflush(stdout) == 0;
    text_finish(&document);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
