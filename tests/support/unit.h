/* SPDX-License-Identifier: Apache-2.0
 *
 * Includes cmocka, and before it the headers that cmocka needs, in its order.
 */
#ifndef TESTS_UNIT_H
#define TESTS_UNIT_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#endif
