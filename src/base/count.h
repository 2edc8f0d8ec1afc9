/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_COUNT_H
#define BASE_COUNT_H

/* Returns the number of items of an array (not of a pointer). */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
