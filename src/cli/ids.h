/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses operands that are ids of claims and leases.
 */
#ifndef CLI_IDS_H
#define CLI_IDS_H

#include <berth/error.h>
#include <stdint.h>

#include "base/vector.h"

struct parsed_ids {
    VECTOR_OF(uint64_t);
};

/* Parses one id. Fails with BERTH_ERROR_INVALID; *ret_id is untouched then. */
int id_parse(const char *word, uint64_t *ret_id, struct berth_error *error);

/* Parses argv from `first` on as ids. There must be at least one. Fails with BERTH_ERROR_INVALID or
 * _MEMORY. The caller finishes the list, also on failure. */
int ids_parse(int argc, char **argv, int first, struct parsed_ids *ret_ids,
              struct berth_error *error);

#endif
