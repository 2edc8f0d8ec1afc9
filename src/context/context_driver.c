/* SPDX-License-Identifier: Apache-2.0 */
#include "context/context_driver.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/text.h"

/* A started driver and its library. */
struct started_driver {
    const struct driver_ops *ops;
    char *file;
    struct driver *driver;
    struct started_driver *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct started_driver *first;

/* Returns the library to load; NULL with BERTH_SYSROOT and without a named library, because this
 * machine's library does not know the recorded machine. */
static const char *choose_library(const struct driver_ops *ops)
{
    const char *named = getenv(ops->variable);
    const char *root = getenv("BERTH_SYSROOT");

    if (named != NULL && *named != '\0')
        return named;
    return root != NULL && *root != '\0' ? NULL : ops->library;
}

static struct started_driver *find_started(const struct driver_ops *ops, const char *file)
{
    struct started_driver *started = first;

    while (started != NULL && (started->ops != ops || strcmp(started->file, file) != 0))
        started = started->next;
    return started;
}

/* The caller holds the mutex. */
static int start_driver(const struct driver_ops *ops, const char *file, struct driver **ret_driver,
                        struct berth_error *error)
{
    struct started_driver *started = calloc(1, sizeof(*started));
    int code;

    if (started != NULL)
        started->file = strdup(file);
    if (started == NULL || started->file == NULL) {
        free(started);
        return error_set_memory(error);
    }
    code = ops->open(file, &started->driver, error);
    if (code < 0) {
        free(started->file);
        free(started);
        return code;
    }
    started->ops = ops;
    started->next = first;
    first = started;
    *ret_driver = started->driver;
    return 0;
}

int context_driver_get(const struct driver_ops *ops, struct driver **ret_driver,
                       struct berth_error *error)
{
    const char *file = choose_library(ops);
    struct started_driver *started;
    int code = 0;

    if (file == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "cannot load %s: with BERTH_SYSROOT, set %s to the library to use",
                         ops->library, ops->variable);
    pthread_mutex_lock(&mutex);
    started = find_started(ops, file);
    if (started != NULL)
        *ret_driver = started->driver;
    else
        code = start_driver(ops, file, ret_driver, error);
    pthread_mutex_unlock(&mutex);
    return code;
}

int context_driver_set_error(struct driver *driver, int status, int code, struct berth_error *error,
                             const char *format, ...)
{
    const char *name = driver->ops->name_status(driver, status);
    struct text what = {0};
    va_list arguments;

    va_start(arguments, format);
    text_append_list(&what, format, arguments);
    va_end(arguments);
    if (driver->ops->classify(status) == DRIVER_RETRY)
        code = BERTH_ERROR_BUSY;
    error_set(error, code, "%s: %.200s (%s %d)", text_string(&what),
              name == NULL ? "unknown error" : name, driver->ops->name, status);
    text_finish(&what);
    return code;
}
