/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints the files that are written from the tables of spec files:
 *
 *     write-spec schema      src/spec/workload.schema.json
 *     write-spec document    docs/SPEC.md
 *
 * `make docs` writes both.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "write_spec.h"

int main(int argc, char **argv)
{
    struct text out = {0};
    bool good;

    if (argc == 2 && strcmp(argv[1], "schema") == 0) {
        spec_schema_write(&out);
    } else if (argc == 2 && strcmp(argv[1], "document") == 0) {
        spec_document_write(&out);
    } else {
        fprintf(stderr, "usage: write-spec schema|document\n");
        return EXIT_FAILURE;
    }
    good = !text_failed(&out) && fputs(text_string(&out), stdout) >= 0 && fflush(stdout) == 0;
    text_finish(&out);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
