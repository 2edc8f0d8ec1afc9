/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/pool_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/socket_files.h"
#include "base/system/user_names.h"
#include "base/text/quote.h"
#include "base/text/text.h"
#include "daemon/mps/mps.h"
#include "daemon/privileges.h"

static int check_directory(const struct privileges_user *user, const char *path,
                           const struct stat *status, struct berth_error *error)
{
    if (!S_ISDIR(status->st_mode))
        return error_set(error, BERTH_ERROR_PERMISSION, "%s: expected a directory, got %s", path,
                         S_ISLNK(status->st_mode) ? "a symlink" : "something else");
    if (status->st_uid != 0 && status->st_uid != user->uid)
        return user_names_explain(
            error, error_set(error, BERTH_ERROR_PERMISSION,
                             "%s: expected a directory of root or of %s, got one of user %ju", path,
                             user->name, (uintmax_t)status->st_uid));
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return error_set(error, BERTH_ERROR_PERMISSION,
                         "%s: expected a directory that only its owner may write to, got mode %04o",
                         path, (unsigned)(status->st_mode & 07777));
    return 0;
}

/* Opens the file, of any type, without following a symlink. Creates a directory if there is none.
 */
static int open_directory(const char *path, int *ret_directory, struct berth_error *error)
{
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    int directory = open(path, flags);

    if (directory < 0 && errno == ENOENT) {
        mode_t former = umask(S_IWGRP | S_IWOTH);
        bool made = mkdir(path, 0755) == 0;

        umask(former);
        if (made || errno == EEXIST)
            directory = open(path, flags);
    }
    if (directory < 0)
        return error_set_errno(error, errno, "cannot open %s", path);
    *ret_directory = directory;
    return 0;
}

static bool is_mps_base(const char *name)
{
    return strcmp(name, MPS_BASE) == 0;
}

/* Returns whether a daemon creates a file of this name: the files beside the socket, logs, and the
 * directory of MPS. */
static bool is_of_daemon(const char *name, const char *stem)
{
    return strncmp(name, stem, strlen(stem)) == 0 || strncmp(name, "log", strlen("log")) == 0 ||
           is_mps_base(name);
}

/* Gives a file of root, or the directory of MPS, to the user. The directory of MPS has a directory
 * for each user, and a file with a second link may belong to any user. */
static void give_file(const struct privileges_user *user, int directory, const char *name)
{
    struct stat status;
    int file = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (file < 0)
        return;
    /* A failure is reported when the file is needed. */
    if (fstat(file, &status) == 0 &&
        (is_mps_base(name) ? S_ISDIR(status.st_mode)
                           : S_ISREG(status.st_mode) && status.st_nlink == 1) &&
        status.st_uid == 0 && fchownat(file, "", user->uid, user->gid, AT_EMPTY_PATH) < 0) {
    }
    close(file);
}

/* Checks that the directory has only files of a daemon, or gives them to the user (`give`). */
static int check_or_give_files(const struct privileges_user *user, const char *path,
                               const char *stem, int directory, bool give,
                               struct berth_error *error)
{
    int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    const struct dirent *entry;
    int code = 0;

    if (entries == NULL) {
        code = error_set_errno(error, errno, "cannot read %s", path);
        if (again >= 0)
            close(again);
        return code;
    }
    while (code == 0 && (entry = readdir(entries)) != NULL) {
        bool is_expected = is_of_daemon(entry->d_name, stem);

        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (give && is_expected)
            give_file(user, directory, entry->d_name);
        else if (!give && !is_expected)
            code = error_set(error, BERTH_ERROR_PERMISSION, "cannot give %s to %s: it contains %s",
                             path, user->name, quote(entry->d_name).text);
    }
    closedir(entries);
    return code;
}

static int give_directory(const struct privileges_user *user, const char *path, const char *stem,
                          struct berth_error *error)
{
    struct stat status;
    int directory = -1;
    int code = open_directory(path, &directory, error);

    if (code < 0)
        return code;
    if (fstat(directory, &status) < 0)
        code = error_set_errno(error, errno, "cannot read %s", path);
    if (code == 0)
        code = check_directory(user, path, &status, error);
    if (code == 0 && status.st_uid == 0)
        code = check_or_give_files(user, path, stem, directory, false, error);
    if (code == 0 && fchownat(directory, "", user->uid, user->gid, AT_EMPTY_PATH) < 0)
        code = error_set_errno(error, errno, "cannot give %s to %s", path, user->name);
    if (code == 0)
        code = check_or_give_files(user, path, stem, directory, true, error);
    close(directory);
    return code;
}

int pool_directory_give(const struct privileges_user *user, const char *socket,
                        struct berth_error *error)
{
    struct text stem = {0}; /* of the socket and the files beside it */
    char *path = NULL;
    int code;

    socket_files_append(socket, ".", &stem);
    if (!text_failed(&stem))
        path = strndup(socket, (size_t)(strrchr(socket, '/') - socket));
    if (path == NULL)
        code = error_set_memory(error);
    else
        code =
            give_directory(user, *path == '\0' ? "/" : path, strrchr(stem.bytes, '/') + 1, error);
    free(path);
    text_finish(&stem);
    return code;
}
