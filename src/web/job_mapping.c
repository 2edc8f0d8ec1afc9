/* SPDX-License-Identifier: Apache-2.0 */
#include "web/job_mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/file.h"

int job_mapping_open(struct job_mapping *mapping, const char *path, struct berth_error *error)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (directory < 0 || faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        error_set(error, BERTH_ERROR_INVALID, "cannot write into %s: %s", path, strerror(errno));
        if (directory >= 0)
            close(directory);
        return BERTH_ERROR_INVALID;
    }
    *mapping = (struct job_mapping){.directory = directory, .is_open = true};
    return 0;
}

static struct job_file *find_file(struct job_mapping *mapping, uint32_t index)
{
    struct job_file *file;

    vector_for_each (file, &mapping->files) {
        if (file->index == index)
            return file;
    }
    file = vector_append(&mapping->files);
    if (file != NULL)
        file->index = index;
    return file;
}

/* Returns whether the line is there already: partitions of a GPU may have the same lease. */
static bool has_line(const struct text *text, const char *line)
{
    const char *found = text->length == 0 ? NULL : text->bytes;

    while (found != NULL && (found = strstr(found, line)) != NULL) {
        if (found == text->bytes || found[-1] == '\n')
            return true;
        found++;
    }
    return false;
}

/* Fills the wanted contents of the files. Returns false if memory runs out. */
static bool fill_files(struct job_mapping *mapping, const struct pool_view *view)
{
    const struct slot_info *slot;
    const struct pool_use *use;
    struct job_file *file;

    vector_for_each (slot, &view->snapshot.slots) {
        if (slot->device->id.vendor == VENDOR_NVIDIA &&
            find_file(mapping, slot->device->id.index) == NULL)
            return false;
    }
    vector_for_each (file, &mapping->files)
        text_clear(&file->wanted);
    vector_for_each (use, &view->uses) {
        struct device_id id = view->snapshot.slots.items[use->slot].device->id;
        char line[24];

        if (id.vendor != VENDOR_NVIDIA)
            continue;
        file = find_file(mapping, id.index);
        snprintf(line, sizeof(line), "%llu\n",
                 (unsigned long long)view->snapshot.leases.items[use->lease].id);
        if (file == NULL || text_failed(&file->wanted))
            return false;
        if (!has_line(&file->wanted, line))
            text_append(&file->wanted, line);
    }
    return true;
}

/* Replaces the file atomically. */
static int write_file(const struct job_mapping *mapping, const char *name, const struct text *text,
                      struct berth_error *error)
{
    char other[32];
    int descriptor;
    int number;

    /* dcgm-exporter ignores names that are no numbers. */
    snprintf(other, sizeof(other), ".%s.new", name);
    unlinkat(mapping->directory, other, 0);
    descriptor = openat(mapping->directory, other,
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (descriptor < 0)
        return error_set_errno(error, errno, "--job-mapping: cannot write %s", other);
    /* dcgm-exporter may run as another user, and the umask may be strict. */
    number = fchmod(descriptor, 0644) != 0 ? errno : 0;
    if (number == 0)
        number = file_write(descriptor, text->bytes, text->length);
    if (close(descriptor) != 0 && number == 0)
        number = errno;
    if (number == 0 && renameat(mapping->directory, other, mapping->directory, name) != 0)
        number = errno;
    if (number == 0)
        return 0;
    unlinkat(mapping->directory, other, 0);
    return error_set_errno(error, number, "--job-mapping: cannot write %s", name);
}

static int update_file(const struct job_mapping *mapping, struct job_file *file,
                       struct berth_error *error)
{
    char name[16];
    int code = 0;

    if (file->is_known && file->written.length == file->wanted.length &&
        (file->wanted.length == 0 ||
         memcmp(file->written.bytes, file->wanted.bytes, file->wanted.length) == 0))
        return 0;
    snprintf(name, sizeof(name), "%u", (unsigned)file->index);
    /* With an empty file, some versions of dcgm-exporter leave the GPU out. */
    if (file->wanted.length > 0)
        code = write_file(mapping, name, &file->wanted, error);
    else if (unlinkat(mapping->directory, name, 0) != 0 && errno != ENOENT)
        code = error_set_errno(error, errno, "--job-mapping: cannot remove %s", name);
    file->is_known = code == 0;
    if (code == 0) {
        text_clear(&file->written);
        text_append_bytes(&file->written, text_string(&file->wanted), file->wanted.length);
        file->is_known = !text_failed(&file->written);
    }
    return code;
}

int job_mapping_update(struct job_mapping *mapping, const struct pool_view *view,
                       struct berth_error *error)
{
    struct job_file *file;
    int code = 0;

    if (!mapping->is_open)
        return 0;
    if (!fill_files(mapping, view))
        return error_set_memory(error);
    vector_for_each (file, &mapping->files) {
        int put = update_file(mapping, file, error);

        if (put < 0)
            code = put;
    }
    return code;
}

void job_mapping_close(struct job_mapping *mapping)
{
    struct job_file *file;

    if (!mapping->is_open)
        return;
    vector_for_each (file, &mapping->files) {
        text_clear(&file->wanted);
        update_file(mapping, file, NULL);
        text_finish(&file->written);
        text_finish(&file->wanted);
    }
    vector_finish(&mapping->files);
    close(mapping->directory);
    *mapping = (struct job_mapping){0};
}
