/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/library.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* Reports why dlopen failed. dlerror names the missing file: the library, or one that it needs. */
static int report_load_failure(const char *file, struct berth_error *error)
{
    const char *reason = dlerror();
    size_t length = strlen(file);
    bool is_absent = strchr(file, '/') != NULL
                         ? access(file, F_OK) < 0
                         : reason != NULL && strncmp(reason, file, length) == 0 &&
                               strstr(reason, "No such file") != NULL;

    return error_set(error, is_absent ? BERTH_ERROR_NOT_FOUND : BERTH_ERROR_INVALID,
                     "cannot load %s: %s", file,
                     is_absent        ? "no such library"
                     : reason == NULL ? "unknown error"
                                      : reason);
}

int library_open(const char *file, const struct library_symbol *symbols, size_t count,
                 void *functions, void **ret_library, struct berth_error *error)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL)
        return report_load_failure(file, error);
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, symbols[i].name);

        if (address == NULL && symbols[i].required) {
            dlclose(library);
            return error_set(error, BERTH_ERROR_INVALID, "cannot load %s: it has no function %s",
                             file, symbols[i].name);
        }
        memcpy((char *)functions + symbols[i].offset, &address, sizeof(address));
    }
    *ret_library = library;
    return 0;
}

void library_close(void *library)
{
    if (library != NULL)
        dlclose(library);
}
