/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cdi_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"
#include "cli/machine_source.h"
#include "spec/cdi_reader.h"

static const char *const default_directories[] = {"/etc/cdi", "/var/run/cdi", NULL};

struct cdi_search {
    bool verbose;
    struct cdi_registry registry;
    struct berth_error *error;
};

/* Prints why a file is skipped, if `verbose` is set and the file exists. */
static int report_skipped(const struct cdi_search *search, const struct berth_error *reason)
{
    if (reason->code == BERTH_ERROR_MEMORY)
        return error_set_memory(search->error);
    if (search->verbose && reason->code != BERTH_ERROR_NOT_FOUND)
        fprintf(stderr, "berth: skipping a CDI file: %s\n", reason->message);
    return 0;
}

/* Reads a file. It may be a pipe or a device, so opening and reading must not block. */
static int read_file(int directory, const char *name, const char *path, struct text *ret_text,
                     struct berth_error *error)
{
    int descriptor = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    int code;

    if (descriptor < 0)
        return error_set_errno(error, errno, "cannot read %s", path);
    if (fstat(descriptor, &status) < 0)
        code = error_set_errno(error, errno, "cannot read %s", path);
    else if (!S_ISREG(status.st_mode))
        code =
            error_set(error, BERTH_ERROR_IO, "%s: expected a regular file, got another kind", path);
    else
        code = file_read_open(descriptor, path, CDI_FILE_SIZE_MAX, ret_text, error);
    close(descriptor);
    return code;
}

static bool is_written_by_us(const struct cdi_registry *file)
{
    static const char own[] = CDI_KIND "=";

    return file->count > 0 && strncmp(file->items[0].name, own, strlen(own)) == 0;
}

static int add_entries(struct cdi_search *search, struct cdi_registry *file, const char *path,
                       unsigned level)
{
    struct berth_error reason = BERTH_ERROR_INIT;
    int code = is_written_by_us(file) ? 0 : cdi_registry_merge(&search->registry, file, level);

    cdi_registry_finish(file);
    if (code == 0)
        return 0;
    error_set(&reason, code, "%s: expected at most %d devices in all files, got more", path,
              CDI_ENTRIES_MAX);
    return report_skipped(search, &reason);
}

static int read_cdi_file(struct cdi_search *search, int directory, const char *path, unsigned level)
{
    struct berth_error reason = BERTH_ERROR_INIT;
    struct cdi_registry file = {0};
    struct text text = {0};
    int code = read_file(directory, strrchr(path, '/') + 1, path, &text, &reason);

    if (code == 0)
        code = cdi_reader_parse(path, text_string(&text), text.length, &file, &reason);
    text_finish(&text);
    return code < 0 ? report_skipped(search, &reason) : add_entries(search, &file, path, level);
}

/* Returns whether container runtimes read a file of this name. */
static bool has_cdi_ending(const char *name)
{
    const char *ending = strrchr(name, '.');

    return ending != NULL && (strcmp(ending, ".json") == 0 || strcmp(ending, ".yaml") == 0);
}

static int compare_paths(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

/* Lists the CDI files of a directory, sorted by path. */
static int list_cdi_files(const char *path, DIR *directory, struct string_list *paths)
{
    const struct dirent *entry;
    struct text file = {0};
    int code = 0;

    while (code == 0 && paths->count < CDI_FILES_MAX && (entry = readdir(directory)) != NULL) {
        if (!has_cdi_ending(entry->d_name))
            continue;
        text_clear(&file);
        text_append_format(&file, "%s/%s", path, entry->d_name);
        code =
            text_failed(&file) ? BERTH_ERROR_MEMORY : string_list_append(paths, text_string(&file));
    }
    text_finish(&file);
    if (paths->count > 0)
        qsort(paths->items, paths->count, sizeof(*paths->items), compare_paths);
    return code;
}

static int read_directory(struct cdi_search *search, const char *path, unsigned level)
{
    struct berth_error reason = BERTH_ERROR_INIT;
    struct string_list paths = {0};
    DIR *directory = opendir(path);
    char *const *file;
    int code;

    if (directory == NULL) {
        error_set_errno(&reason, errno, "cannot read %s", path);
        return report_skipped(search, &reason);
    }
    code = list_cdi_files(path, directory, &paths);
    if (code < 0)
        error_set_memory(search->error);
    vector_for_each (file, &paths) {
        if (code == 0)
            code = read_cdi_file(search, dirfd(directory), *file, level);
    }
    string_list_finish(&paths);
    closedir(directory);
    return code;
}

/* Reads the directories of BERTH_CDI_DIRECTORIES. Empty names are skipped. */
static int read_named_directories(struct cdi_search *search, const char *names)
{
    unsigned level = 0;
    int code = 0;

    for (const char *next = names; code == 0 && *next != '\0'; level++) {
        size_t length = strcspn(next, ":");
        char *path = strndup(next, length);

        if (path == NULL)
            return error_set_memory(search->error);
        if (length > 0)
            code = read_directory(search, path, level);
        free(path);
        next += length + (next[length] == ':');
    }
    return code;
}

static int read_default_directories(struct cdi_search *search)
{
    struct text path = {0};
    char *prefix;
    int code = machine_source_sysroot(&prefix, search->error);

    if (code < 0)
        return code;
    for (unsigned level = 0; code == 0 && default_directories[level] != NULL; level++) {
        text_clear(&path);
        text_append(&path, prefix);
        text_append(&path, default_directories[level]);
        code = text_failed(&path) ? error_set_memory(search->error)
                                  : read_directory(search, text_string(&path), level);
    }
    text_finish(&path);
    free(prefix);
    return code;
}

int cdi_files_read(bool verbose, struct cdi_registry *ret_registry, struct berth_error *error)
{
    const char *names = getenv("BERTH_CDI_DIRECTORIES");
    struct cdi_search search = {.verbose = verbose, .error = error};
    int code = names != NULL && *names != '\0' ? read_named_directories(&search, names)
                                               : read_default_directories(&search);

    if (code == 0)
        *ret_registry = search.registry;
    else
        cdi_registry_finish(&search.registry);
    return code;
}

/* Writes the document and closes the descriptor. Returns 0 or an errno. */
static int write_document(int descriptor, const struct text *document)
{
    int number = fchmod(descriptor, 0644) < 0 ? errno : 0;

    if (number == 0)
        number = file_write(descriptor, text_string(document), document->length);
    if (close(descriptor) < 0 && number == 0)
        number = errno;
    return number;
}

/* Writes a draft under a name that no runtime reads, then renames it. Returns 0 or an errno. */
static int write_by_rename(char *draft, const char *path, const struct text *document)
{
    int descriptor = mkostemp(draft, O_CLOEXEC);
    int number;

    if (descriptor < 0)
        return errno;
    number = write_document(descriptor, document);
    if (number == 0 && rename(draft, path) < 0)
        number = errno;
    if (number != 0)
        unlink(draft);
    return number;
}

int cdi_files_write(const char *directory, const struct text *document, struct berth_error *error)
{
    struct text draft = {0};
    struct text path = {0};
    bool is_made = false;
    int number = 0;

    text_append_format(&draft, "%s/.berth-gpu.XXXXXX", directory);
    text_append_format(&path, "%s/" CDI_FILE_NAME, directory);
    if (text_failed(&draft) || text_failed(&path) || text_failed(document))
        number = ENOMEM;
    else if (mkdir(directory, 0755) == 0)
        is_made = true;
    else if (errno != EEXIST)
        number = errno;
    if (number == 0)
        number = write_by_rename(draft.bytes, path.bytes, document);
    if (number != 0 && is_made)
        rmdir(directory);
    text_finish(&draft);
    text_finish(&path);
    return number == 0 ? 0 : error_set_errno(error, number, "cannot write into %s", directory);
}
