/* SPDX-License-Identifier: Apache-2.0 */
#include "context/context_driver.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/text.h"

/* A driver that was started, by the library that it is of. */
struct started {
    const struct driver_ops *ops;
    char *file;
    struct driver *driver;
    struct started *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct started *first;

/* The library to load; NULL: what this machine has installed says nothing of a recorded one. */
static const char *file_of(const struct driver_ops *ops)
{
    const char *named = getenv(ops->variable);
    const char *root = getenv("BERTH_SYSROOT");

    if (named != NULL && *named != '\0')
        return named;
    return root != NULL && *root != '\0' ? NULL : ops->library;
}

static struct started *find(const struct driver_ops *ops, const char *file)
{
    struct started *started = first;

    while (started != NULL && (started->ops != ops || strcmp(started->file, file) != 0))
        started = started->next;
    return started;
}

/* With the mutex. */
static int start(const struct driver_ops *ops, const char *file, struct driver **ret_driver,
                 struct berth_error *error)
{
    struct started *started = calloc(1, sizeof(*started));
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

int driver_need(const struct driver_ops *ops, struct driver **ret_driver, struct berth_error *error)
{
    const char *file = file_of(ops);
    struct started *started;
    int code = 0;

    if (file == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "%s: wanted the recorded machine's, found none in %s", ops->library,
                         ops->variable);
    pthread_mutex_lock(&mutex);
    started = find(ops, file);
    if (started != NULL)
        *ret_driver = started->driver;
    else
        code = start(ops, file, ret_driver, error);
    pthread_mutex_unlock(&mutex);
    return code;
}

int driver_refuse(struct driver *driver, int status, int code, struct berth_error *error,
                  const char *format, ...)
{
    const char *name = driver->ops->name_status(driver, status);
    struct text what = {0};
    va_list arguments;

    va_start(arguments, format);
    text_append_list(&what, format, arguments);
    va_end(arguments);
    if (driver->ops->judge(status) == DRIVER_RETRY)
        code = BERTH_ERROR_BUSY;
    error_set(error, code, "%s: %.200s (%s %d)", text_string(&what),
              name == NULL ? "no words for it" : name, driver->ops->name, status);
    text_finish(&what);
    return code;
}
