/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the page, which are part of the program. tools/embed.c writes them.
 */
#ifndef WEB_ASSETS_H
#define WEB_ASSETS_H

#include <stddef.h>

struct asset {
    const char *name; /* "index.html" */
    const char *type; /* of its content */
    const char *tag;  /* another one for other content; with quotation marks */
    const char *bytes;
    size_t length;
};

/* All of them, ended by one without a name. */
extern const struct asset assets[];

#endif
