/* SPDX-License-Identifier: Apache-2.0
 *
 * The directory of the user's state.
 */
#ifndef CLI_STATE_HOME_H
#define CLI_STATE_HOME_H

#include <berth/error.h>

#include "base/text/text.h"

/* Appends the directory: XDG_STATE_HOME, or its default. Fails with BERTH_ERROR_NOT_FOUND if HOME
 * is not set. */
int state_home_append(struct text *out, struct berth_error *error);

/* Creates the directory and its parents, accessible only to the user. Changes `path` meanwhile, and
 * restores it. Fails with BERTH_ERROR_PERMISSION or _IO. */
int state_home_make_directories(char *path, struct berth_error *error);

#endif
