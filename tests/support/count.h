/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_COUNT_H
#define TESTS_COUNT_H

/* How many items an array (not a pointer) has. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
