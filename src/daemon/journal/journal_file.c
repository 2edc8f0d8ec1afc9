/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/journal/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

/* Space is allocated in steps. Claims leave SPARE bytes for records that must be written even when
 * the disk is full: the ends of leases. */
enum { STEP = 64 * 1024, SPARE = 16 * 1024, LONG = 1024 * 1024, LONGER_THAN_FIRST = 8 };

/* Allocates disk space for the bytes from `from` to `to`. */
static int take_space(int descriptor, size_t from, size_t to)
{
    static const char zeros[4096];

    if (fallocate(descriptor, 0, (off_t)from, (off_t)(to - from)) == 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != ENOSYS)
        return -1;
    while (from < to) {
        size_t length = to - from < sizeof(zeros) ? to - from : sizeof(zeros);
        ssize_t written = pwrite(descriptor, zeros, length, (off_t)from);

        if (written < 0 && errno != EINTR)
            return -1;
        from += written < 0 ? 0 : (size_t)written;
    }
    return 0;
}

/* Maps the file from the end of its records to `size`. */
static int map_end(struct journal_file *file, size_t size)
{
    size_t start = file->used / STEP * STEP;
    void *map = mmap(NULL, size - start, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor,
                     (off_t)start);

    if (map == MAP_FAILED)
        return -1;
    if (file->map != NULL)
        munmap(file->map, file->size - file->mapped);
    file->map = map;
    file->mapped = start;
    file->size = size;
    return 0;
}

static int grow_file(struct journal_file *file, size_t need)
{
    size_t size = (file->used + need + STEP + STEP - 1) / STEP * STEP;

    if (size <= file->size)
        return 0;
    if (take_space(file->descriptor, file->size, size) < 0)
        return -1;
    return map_end(file, size);
}

static bool write_down(struct journal_file *file, const void *bytes, size_t length)
{
    if (length > file->size - file->used && grow_file(file, length) < 0)
        return false;
    memcpy(file->map + (file->used - file->mapped), bytes, length);
    file->used += length;
    return true;
}

/* Writes the first content of a new file with pwrite(), so that this part need not be mapped. */
static int write_content(struct journal_file *file, const struct text *content)
{
    size_t size = (content->length + STEP + STEP - 1) / STEP * STEP;

    if (take_space(file->descriptor, 0, size) < 0)
        return -1;
    while (file->used < content->length) {
        ssize_t written = pwrite(file->descriptor, content->bytes + file->used,
                                 content->length - file->used, (off_t)file->used);

        if (written < 0 && errno != EINTR)
            return -1;
        file->used += written < 0 ? 0 : (size_t)written;
    }
    file->first = content->length;
    return map_end(file, size);
}

void journal_file_finish(struct journal_file *file)
{
    if (file->map != NULL)
        munmap(file->map, file->size - file->mapped);
    if (file->descriptor >= 0)
        close(file->descriptor);
    text_finish(&file->waiting);
    *file = (struct journal_file)JOURNAL_FILE_INIT;
}

int journal_file_make(struct journal_file *file, const char *path, const struct text *content,
                      struct berth_error *error)
{
    struct journal_file made = JOURNAL_FILE_INIT;
    struct text name = {0};
    int code = 0;

    text_append_format(&name, "%s.new", path);
    if (text_failed(&name) || text_failed(content))
        code = error_set_memory(error);
    if (code == 0) {
        made.descriptor =
            open(name.bytes, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (made.descriptor < 0 || write_content(&made, content) < 0 ||
            rename(name.bytes, path) < 0)
            code = error_set_errno(error, errno, "cannot write %s", path);
    }
    if (code < 0) {
        if (made.descriptor >= 0)
            unlink(name.bytes);
        journal_file_finish(&made);
    } else {
        journal_file_finish(file);
        *file = made;
    }
    text_finish(&name);
    return code;
}

char *journal_file_keep_damaged(const char *path)
{
    struct text kept = {0};

    text_append_format(&kept, "%s.damaged", path);
    if (!text_failed(&kept) &&
        ((unlink(kept.bytes) < 0 && errno != ENOENT) || link(path, kept.bytes) < 0)) {
        text_finish(&kept);
        return NULL;
    }
    return text_detach(&kept);
}

int journal_file_reserve(struct journal_file *file, size_t need, struct berth_error *error)
{
    if (file->size - file->used >= need + SPARE)
        return 0;
    if (grow_file(file, need + SPARE) < 0)
        return error_set_errno(error, errno, "cannot write the pool's journal");
    return 0;
}

void journal_file_append(struct journal_file *file, const void *bytes, size_t length)
{
    if (file->waiting.length > 0 || !write_down(file, bytes, length))
        text_append_bytes(&file->waiting, bytes, length);
}

bool journal_file_is_behind(struct journal_file *file)
{
    if (file->waiting.length == 0)
        return false;
    if (!write_down(file, file->waiting.bytes, file->waiting.length))
        return true;
    text_clear(&file->waiting);
    return false;
}

bool journal_file_is_long(const struct journal_file *file)
{
    return file->used > LONG && file->used / LONGER_THAN_FIRST > file->first;
}
