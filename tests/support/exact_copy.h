/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies bytes into memory of exactly their length, so that a sanitizer sees a read beyond them.
 */
#ifndef TESTS_EXACT_COPY_H
#define TESTS_EXACT_COPY_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

/* Returns a copy of `length` bytes, without a terminator. The caller frees it. */
static inline char *exact_copy(const char *bytes, size_t length)
{
    char *copy = malloc(length > 0 ? length : 1);

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    return copy;
}

#endif
