/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses inventories. In messages every text is called FILE_NAME.
 */
#ifndef TESTS_INVENTORIES_H
#define TESTS_INVENTORIES_H

#include "support/unit.h"

#include <stdlib.h>
#include <string.h>

#include "spec/inventory.h"
#include "support/spec/documents.h"

/* Parses an inventory, which must be valid. The caller finishes the machine. */
static inline struct machine parse_inventory(const char *string)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine;
    char *copy = exact_copy(string, strlen(string));
    int code = inventory_parse(FILE_NAME, copy, strlen(string), &machine, &error);

    free(copy);
    assert_string_equal(error.message, "");
    assert_int_equal(code, 0);
    return machine;
}

/* Checks that parsing an inventory fails with this code, and with this message after the file's
 * name. */
static inline void check_inventory_refused(const char *string, int code, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine machine = {.devices = {.count = 4711}};
    char *copy = exact_copy(string, strlen(string));
    int found = inventory_parse(FILE_NAME, copy, strlen(string), &machine, &error);

    assert_int_equal(inventory_parse(FILE_NAME, copy, strlen(string), &machine, NULL), found);
    free(copy);
    assert_int_equal(strncmp(error.message, FILE_NAME ":", strlen(FILE_NAME ":")), 0);
    assert_string_equal(error.message + strlen(FILE_NAME ":"), message);
    assert_int_equal(found, code);
    assert_int_equal(error.code, code);
    assert_int_equal(machine.devices.count, 4711);
}

#endif
