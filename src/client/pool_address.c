/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pool_address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text/quote.h"
#include "base/text/text.h"

static const char *get_variable(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || *value == '\0' ? NULL : value;
}

static int find_inventory(const char *option, char **ret_path, struct berth_error *error)
{
    const char *path = option != NULL ? option : get_variable("BERTH_INVENTORY");
    char *real;

    if (path == NULL)
        return 0;
    if (*path == '\0')
        return error_set(error, BERTH_ERROR_INVALID, "--inventory: expected a file, got nothing");
    real = realpath(path, NULL);
    if (real == NULL)
        return error_set_errno(error, errno, "cannot read %s", path);
    *ret_path = real;
    return 0;
}

static int check_absolute(const char *name, const char *value, struct berth_error *error)
{
    if (*value == '/')
        return 0;
    return error_set(error, BERTH_ERROR_INVALID, "%s: expected an absolute path, got %s", name,
                     quote(value).text);
}

/* Sets the socket of a daemon that is not the user's own. */
static int set_socket(struct pool_address *address, const char *path, struct berth_error *error)
{
    size_t length = (size_t)(strrchr(path, '/') - path);

    address->socket = strdup(path);
    address->directory = strndup(path, length > 0 ? length : 1);
    if (address->socket == NULL || address->directory == NULL)
        return error_set_memory(error);
    return 0;
}

/* Finds out whether the machine's socket exists. When its directory is not accessible, this fails:
 * otherwise the user would start a second pool of the same devices. */
static int find_machine_socket(const char *path, bool *ret_there, struct berth_error *error)
{
    struct stat status;

    if (lstat(path, &status) == 0) {
        *ret_there = true;
        return 0;
    }
    if (errno != ENOENT && errno != ENOTDIR)
        return error_set_errno(error, errno, "cannot read %s", path);
    return 0;
}

/* Returns the length without trailing slashes, so that equal directories have equal paths. */
static size_t length_without_slashes(const char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    return length;
}

/* Returns whether it is a directory of this user that is closed to others. */
static bool is_private_directory(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

/* Appends the directory berth in the user's runtime directory. Appends nothing if there is no such
 * runtime directory. */
static void append_runtime(const struct pool_places *places, struct text *out)
{
    const char *named = get_variable("XDG_RUNTIME_DIR");

    if (named != NULL && *named == '/' && is_private_directory(named)) {
        text_append_bytes(out, named, length_without_slashes(named));
    } else {
        text_append_format(out, "%s/%ju", places->run_user, (uintmax_t)geteuid());
        if (text_failed(out) || !is_private_directory(out->bytes))
            text_clear(out);
    }
    if (out->length > 0)
        text_append(out, "/berth");
}

/* Appends the user's own directory if none is named. */
static void append_default(const struct pool_places *places, struct text *out)
{
    struct text runtime = {0};
    struct stat status;
    bool is_missing;
    bool is_foreign;

    text_append_format(out, "%s/berth-%ju", places->temporary, (uintmax_t)geteuid());
    if (text_failed(out))
        return;
    is_missing = lstat(out->bytes, &status) < 0;
    is_foreign = !is_missing && status.st_uid != geteuid();
    if (is_missing || is_foreign)
        append_runtime(places, &runtime);
    if (runtime.length > 0 && (is_foreign || is_private_directory(text_string(&runtime)))) {
        text_clear(out);
        text_append(out, text_string(&runtime));
    }
    out->failed |= runtime.failed;
    text_finish(&runtime);
}

static int set_own(const struct pool_places *places, struct pool_address *address,
                   struct berth_error *error)
{
    const char *named = get_variable("BERTH_RUNTIME_DIR");
    struct text directory = {0};
    struct text socket = {0};

    if (named != NULL && check_absolute("BERTH_RUNTIME_DIR", named, error) < 0)
        return BERTH_ERROR_INVALID;
    if (named != NULL)
        text_append_bytes(&directory, named, length_without_slashes(named));
    else
        append_default(places, &directory);
    if (address->inventory != NULL)
        text_append_format(&directory, "/%016" PRIx64,
                           hash_bytes(address->inventory, strlen(address->inventory)));
    text_append_bytes(&socket, text_string(&directory), directory.length);
    text_append(&socket, "/" POOL_SOCKET_NAME);
    address->own = true;
    address->directory = text_detach(&directory);
    address->socket = text_detach(&socket);
    text_finish(&directory);
    text_finish(&socket);
    if (address->directory == NULL || address->socket == NULL)
        return error_set_memory(error);
    return 0;
}

/* Returns whether a lease of the user's own daemon has set BERTH_SOCKET. The daemon is still
 * started on demand then. */
static bool is_own(const struct pool_address *own, const char *socket)
{
    return get_variable("BERTH_LEASE") != NULL && strcmp(own->socket, socket) == 0;
}

/* Clears the address that set_own has set. */
static void clear_choice(struct pool_address *address)
{
    free(address->directory);
    free(address->socket);
    address->directory = address->socket = NULL;
    address->own = false;
}

static int set_named(const struct pool_places *places, struct pool_address *address,
                     const char *socket, struct berth_error *error)
{
    int code = check_absolute("BERTH_SOCKET", socket, error);

    if (code < 0)
        return code;
    code = set_own(places, address, error);
    if (code == BERTH_ERROR_MEMORY || (code == 0 && is_own(address, socket)))
        return code;
    clear_choice(address);
    /* Within a lease of the machine's pool, BERTH_SOCKET names the machine's daemon. */
    address->machine =
        get_variable("BERTH_LEASE") != NULL && strcmp(socket, places->machine_socket) == 0;
    return set_socket(address, socket, error);
}

static int choose_socket(const struct pool_places *places, struct pool_address *address,
                         struct berth_error *error)
{
    const char *named = get_variable("BERTH_SOCKET");
    int code = 0;

    if (named != NULL)
        return set_named(places, address, named, error);
    if (address->inventory == NULL)
        code = find_machine_socket(places->machine_socket, &address->machine, error);
    if (code < 0)
        return code;
    return address->machine ? set_socket(address, places->machine_socket, error)
                            : set_own(places, address, error);
}

int pool_address_find_in(const struct pool_places *places, const char *inventory,
                         struct pool_address *ret_address, struct berth_error *error)
{
    struct pool_address address = {0};
    int code = find_inventory(inventory, &address.inventory, error);

    if (code == 0)
        code = choose_socket(places, &address, error);
    if (code < 0) {
        pool_address_finish(&address);
        return code;
    }
    *ret_address = address;
    return 0;
}

int pool_address_find(const char *inventory, struct pool_address *ret_address,
                      struct berth_error *error)
{
    static const struct pool_places usual = {POOL_MACHINE_SOCKET, "/tmp", "/run/user"};

    return pool_address_find_in(&usual, inventory, ret_address, error);
}

bool pool_address_is_machine(const struct pool_address *address)
{
    return address->machine || strcmp(address->socket, POOL_MACHINE_SOCKET) == 0;
}

void pool_address_finish(struct pool_address *address)
{
    free(address->directory);
    free(address->socket);
    free(address->inventory);
    *address = (struct pool_address){0};
}
