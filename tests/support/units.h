/* SPDX-License-Identifier: Apache-2.0
 *
 * Binary units, for tests about sizes.
 */
#ifndef TESTS_UNITS_H
#define TESTS_UNITS_H

#include <stdint.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)
#define PIB (1024 * TIB)
#define EIB (1024 * PIB)

#endif
