/* SPDX-License-Identifier: Apache-2.0 */
#include "client/user_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/user_names.h"

static const char *describe_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFLNK:
        return "a symlink";
    case S_IFREG:
        return "a file";
    case S_IFSOCK:
        return "a socket";
    default:
        return "something else";
    }
}

static int check_status(const char *path, const struct stat *status, struct berth_error *error)
{
    if (!S_ISDIR(status->st_mode))
        return error_set(error, BERTH_ERROR_PERMISSION, "%s: expected a directory, got %s", path,
                         describe_type(status->st_mode));
    if (status->st_uid != geteuid())
        return user_names_explain(
            error, error_set(error, BERTH_ERROR_PERMISSION,
                             "%s: expected a directory of user %ju, got one of user %ju; "
                             "set BERTH_RUNTIME_DIR to use another directory",
                             path, (uintmax_t)geteuid(), (uintmax_t)status->st_uid));
    if ((status->st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return error_set(error, BERTH_ERROR_PERMISSION,
                         "%s: expected a directory with mode 0700, got mode %04o", path,
                         (unsigned)(status->st_mode & 07777));
    return 0;
}

/* Gives the owner all rights, if an unusual file-mode mask has removed some. */
static int restore_mode(int directory, mode_t mode)
{
    char path[64];

    if ((mode & S_IRWXU) == S_IRWXU)
        return 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", directory);
    return chmod(path, S_IRWXU);
}

/* The entry `name` of the directory `at`, and its whole path `shown` for messages. */
struct directory_entry {
    int at;
    const char *name;
    const char *shown;
};

/* Opens an entry of any type, without following a symlink, so that the message can name its type.
 */
static int open_entry(const struct directory_entry *entry)
{
    return openat(entry->at, entry->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

static int open_checked(const struct directory_entry *entry, bool make, int *ret_directory,
                        struct berth_error *error)
{
    struct stat status;
    bool made = false;
    int directory = open_entry(entry);
    int code;

    if (directory < 0 && errno == ENOENT && make) {
        made = mkdirat(entry->at, entry->name, S_IRWXU) == 0;
        if (!made && errno != EEXIST)
            return error_set_errno(error, errno, "cannot create the directory %s", entry->shown);
        directory = open_entry(entry);
    }
    if (directory < 0)
        return error_set_errno(error, errno, "cannot open %s", entry->shown);
    if (fstat(directory, &status) < 0)
        code = error_set_errno(error, errno, "cannot read %s", entry->shown);
    else
        code = check_status(entry->shown, &status, error);
    if (code == 0 && made && restore_mode(directory, status.st_mode) < 0)
        code = error_set_errno(error, errno, "cannot change the mode of %s", entry->shown);
    if (code == 0)
        *ret_directory = directory;
    else
        close(directory);
    return code;
}

static int open_inventory_directory(const struct pool_address *address, bool make,
                                    int *ret_directory, struct berth_error *error)
{
    const char *name = strrchr(address->directory, '/') + 1;
    char *outer = strndup(address->directory, (size_t)(name - 1 - address->directory));
    int around = -1;
    int code;

    if (outer == NULL)
        return error_set_memory(error);
    code = open_checked(&(struct directory_entry){AT_FDCWD, outer, outer}, make, &around, error);
    free(outer);
    if (code < 0)
        return code;
    code = open_checked(&(struct directory_entry){around, name, address->directory}, make,
                        ret_directory, error);
    close(around);
    return code;
}

static int open_directory(const struct pool_address *address, bool make, int *ret_directory,
                          struct berth_error *error)
{
    const struct directory_entry entry = {AT_FDCWD, address->directory, address->directory};

    return address->inventory != NULL
               ? open_inventory_directory(address, make, ret_directory, error)
               : open_checked(&entry, make, ret_directory, error);
}

int user_directory_open(const struct pool_address *address, int *ret_directory,
                        struct berth_error *error)
{
    return open_directory(address, true, ret_directory, error);
}

int user_directory_check(const struct pool_address *address, struct berth_error *error)
{
    int directory = -1;
    int code = open_directory(address, false, &directory, error);

    if (directory >= 0)
        close(directory);
    return code == BERTH_ERROR_NOT_FOUND ? 0 : code;
}

int user_directory_check_last(const struct pool_address *address, struct berth_error *error)
{
    struct stat status;

    if (lstat(address->directory, &status) < 0)
        return error_set_errno(error, errno, "cannot read %s", address->directory);
    return check_status(address->directory, &status, error);
}
