/* SPDX-License-Identifier: Apache-2.0
 *
 * The name people give a device: nvidia0, amd3, dri2; nvidia0.3 is MIG instance 3 of nvidia0.
 */
#ifndef MODEL_DEVICE_ID_H
#define MODEL_DEVICE_ID_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "model/vendor.h"

#define DEVICE_NO_MIG UINT32_MAX
/* The largest index and MIG number. */
#define DEVICE_INDEX_MAX 999999
/* The most ids in a list: it is searched one by one. */
#define DEVICE_ID_LIST_MAX 4096

struct device_id {
    enum vendor vendor;
    uint32_t index;
    uint32_t mig; /* DEVICE_NO_MIG for a whole GPU */
};

struct device_id_list {
    VECTOR_OF(struct device_id);
};

struct device_id_text {
    char text[32];
};

/* The id as text, for use within one expression. */
struct device_id_text device_id_format(struct device_id id);

/* Appends the same. */
void device_id_append(struct device_id id, struct text *out);

/* Reads an id exactly as device_id_format writes it. Fails with BERTH_ERROR_SYNTAX; *ret_id is
 * untouched then. */
int device_id_parse(const char *string, struct device_id *ret_id, struct berth_error *error);

bool device_id_equals(struct device_id one, struct device_id other);

/* Whether the list holds the id. */
bool device_id_list_has(const struct device_id_list *list, struct device_id id);

/* Whether both hold the same ids in the same order. */
bool device_id_list_equals(const struct device_id_list *one, const struct device_id_list *other);

/* A list of its own with the same ids. Fails with BERTH_ERROR_MEMORY; *ret_list is untouched
 * then. */
int device_id_list_copy(struct device_id_list *ret_list, const struct device_id_list *from);

/* Which spellings of an id a list takes. */
enum device_id_form {
    DEVICE_ID_FULL,     /* nvidia0 */
    DEVICE_ID_OR_INDEX, /* also 0, whose vendor is VENDOR_UNNAMED */
};

/* Adds the ids of a comma-separated text ("nvidia0,nvidia2") that the list does not hold yet.
 * Fails with BERTH_ERROR_SYNTAX (also for an empty text or part), BERTH_ERROR_LIMIT or
 * BERTH_ERROR_MEMORY; the list may then hold some of them. */
int device_id_list_parse(struct device_id_list *list, const char *string,
                         struct berth_error *error);
int device_id_list_parse_form(struct device_id_list *list, const char *string,
                              enum device_id_form form, struct berth_error *error);

/* Whether some id of the list is only an index. */
bool device_id_list_is_unresolved(const struct device_id_list *list);

/* Gives each id that is only an index the vendor of the one device that has this index among those
 * that are present; only devices of `vendor` count unless that is VENDOR_UNNAMED. Fails with
 * BERTH_ERROR_INVALID where none or several have it; the list may then be resolved in part. */
int device_id_list_resolve(struct device_id_list *list, enum vendor vendor,
                           const struct device_id_list *present, struct berth_error *error);

/* Appends which ids there are: "there are nvidia0 to nvidia7 and amd0", "there is only dri0",
 * "there are none". The list is sorted by vendor and index, or in a pool's order. */
void device_id_list_describe(const struct device_id_list *present, struct text *out);

/* Sets BERTH_ERROR_INVALID: "no device named nvidia9 here; there are nvidia0 to nvidia7". Returns
 * the code. */
int device_id_list_refuse(const struct device_id_list *present, struct device_id id,
                          struct berth_error *error);

#endif
