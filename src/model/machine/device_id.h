/* SPDX-License-Identifier: Apache-2.0
 *
 * The id of a device: nvidia0, amd3, dri2. nvidia0.3 is MIG instance 3 of nvidia0.
 */
#ifndef MODEL_MACHINE_DEVICE_ID_H
#define MODEL_MACHINE_DEVICE_ID_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/text.h"
#include "base/vector.h"
#include "model/machine/vendor.h"

#define DEVICE_NO_MIG UINT32_MAX
/* The largest index and MIG number. */
#define DEVICE_INDEX_MAX 999999
/* The maximum number of ids in a list, because lists are searched linearly. */
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

/* Formats an id, for use within one expression. */
struct device_id_text device_id_format(struct device_id id);

/* Appends an id to a text. */
void device_id_append(struct device_id id, struct text *out);

/* Parses an id in the format of device_id_format. Fails with BERTH_ERROR_SYNTAX; *ret_id is
 * untouched then. */
int device_id_parse(const char *string, struct device_id *ret_id, struct berth_error *error);

bool device_id_equals(struct device_id one, struct device_id other);

/* Returns whether the list has the id. */
bool device_id_list_has(const struct device_id_list *list, struct device_id id);

/* Returns whether both have the same ids in the same order. */
bool device_id_list_equals(const struct device_id_list *one, const struct device_id_list *other);

/* Copies a list. Fails with BERTH_ERROR_MEMORY; *ret_list is untouched then. */
int device_id_list_copy(struct device_id_list *ret_list, const struct device_id_list *from);

/* The forms of ids that a list may contain. */
enum device_id_form {
    DEVICE_ID_FULL,     /* nvidia0 */
    DEVICE_ID_OR_INDEX, /* also 0, whose vendor is VENDOR_UNNAMED */
};

/* Parses comma-separated ids ("nvidia0,nvidia2") and adds those that the list does not have yet.
 * Fails with BERTH_ERROR_SYNTAX (also for an empty text or part), BERTH_ERROR_LIMIT or
 * BERTH_ERROR_MEMORY; some of the ids may be added then. */
int device_id_list_parse(struct device_id_list *list, const char *string,
                         struct berth_error *error);
int device_id_list_parse_form(struct device_id_list *list, const char *string,
                              enum device_id_form form, struct berth_error *error);

/* Returns whether an id of the list is only an index. */
bool device_id_list_is_unresolved(const struct device_id_list *list);

/* Sets the vendor of each id that is only an index: that of the present device with the same index.
 * Only devices of `vendor` count, unless it is VENDOR_UNNAMED. Fails with BERTH_ERROR_INVALID when
 * no device or several devices have the index; the list may be partly resolved then. */
int device_id_list_resolve(struct device_id_list *list, enum vendor vendor,
                           const struct device_id_list *present, struct berth_error *error);

/* Appends a sentence with all ids: "there are nvidia0 to nvidia7 and amd0", "there is only dri0",
 * "there are none". The list must be sorted by vendor and index, or in a pool's order. */
void device_id_list_describe(const struct device_id_list *present, struct text *out);

/* Appends a sentence: "no device named nvidia9 here; there are nvidia0 to nvidia7". */
void device_id_list_describe_missing(const struct device_id_list *present, struct device_id id,
                                     struct text *out);

/* Sets BERTH_ERROR_INVALID with the sentence of device_id_list_describe_missing(), or
 * BERTH_ERROR_MEMORY. Returns the code. */
int device_id_list_refuse(const struct device_id_list *present, struct device_id id,
                          struct berth_error *error);

#endif
