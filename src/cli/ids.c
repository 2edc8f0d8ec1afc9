/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/ids.h"

#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"

int id_parse(const char *word, uint64_t *ret_id, struct berth_error *error)
{
    if (quantity_parse_number(word, 1, UINT64_MAX, ret_id, NULL) < 0)
        return error_set(error, BERTH_ERROR_INVALID, "expected an id such as 12, got %s",
                         quote(word).text);
    return 0;
}

int ids_parse(int argc, char **argv, int first, struct parsed_ids *ret_ids,
              struct berth_error *error)
{
    if (first >= argc)
        return error_set(error, BERTH_ERROR_INVALID, "expected an id, got nothing");
    for (int i = first; i < argc; i++) {
        uint64_t id;
        int code = id_parse(argv[i], &id, error);
        uint64_t *place;

        if (code < 0)
            return code;
        place = vector_append(ret_ids);
        if (place == NULL)
            return error_set_memory(error);
        *place = id;
    }
    return 0;
}
