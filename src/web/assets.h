/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the page, embedded into the program by tools/embed.c.
 */
#ifndef WEB_ASSETS_H
#define WEB_ASSETS_H

#include <stddef.h>

struct asset {
    const char *name; /* "index.html" */
    const char *type; /* the Content-Type */
    const char *tag;  /* the ETag, with quotation marks */
    const char *bytes;
    size_t length;
};

/* All files, ended by an entry without a name. */
extern const struct asset assets[];

#endif
