/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_COUNT_H
#define BASE_COUNT_H

/* How many items an array (not a pointer) has. */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
