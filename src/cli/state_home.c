/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/state_home.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/text/quote.h"

int state_home_append(struct text *out, struct berth_error *error)
{
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");

    /* The XDG specification says that a relative path must be ignored. */
    if (state != NULL && state[0] == '/') {
        text_append(out, state);
        return 0;
    }
    if (home == NULL || home[0] != '/')
        return error_set(error, BERTH_ERROR_NOT_FOUND, "HOME: expected an absolute path, got %s",
                         quote(home == NULL ? "" : home).text);
    text_append_format(out, "%s/.local/state", home);
    return 0;
}

int state_home_make_directories(char *path, struct berth_error *error)
{
    for (char *at = path + 1;; at++) {
        char kept = *at;

        if (kept != '/' && kept != '\0')
            continue;
        *at = '\0';
        if (mkdir(path, 0700) < 0 && errno != EEXIST) {
            int code = error_set_errno(error, errno, "cannot create %s", path);

            *at = kept;
            return code;
        }
        *at = kept;
        if (kept == '\0')
            return 0;
    }
}
