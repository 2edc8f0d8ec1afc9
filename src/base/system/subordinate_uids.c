/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/subordinate_uids.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system/file.h"

enum { NAME_MAX_LENGTH = 255, FILE_SIZE_MAX = 4 << 20, ENTRY_SIZE = 16384 };

/* Splits the span after the first colon. */
static bool split_at_colon(struct span *rest, struct span *ret_part)
{
    const char *colon = rest->length == 0 ? NULL : memchr(rest->bytes, ':', rest->length);

    if (colon == NULL)
        return false;
    *ret_part = (struct span){rest->bytes, (size_t)(colon - rest->bytes)};
    rest->bytes = colon + 1;
    rest->length -= ret_part->length + 1;
    return true;
}

static bool read_uid(struct span text, uint64_t *ret_number)
{
    return span_read_number(&text, ret_number) && text.length == 0 && *ret_number <= UINT32_MAX;
}

static bool find_owner(struct span name, subordinate_uids_resolver *resolve, void *context,
                       uint32_t *ret_owner)
{
    char string[NAME_MAX_LENGTH + 1];
    uint64_t number;

    if (read_uid(name, &number)) {
        *ret_owner = (uint32_t)number;
        return true;
    }
    if (name.length >= sizeof(string))
        return false;
    memcpy(string, name.bytes, name.length);
    string[name.length] = '\0';
    return resolve(context, string, ret_owner);
}

static bool parse_line(struct span line, subordinate_uids_resolver *resolve, void *context,
                       struct subordinate_range *ret_range)
{
    struct span name;
    struct span first;
    uint64_t begin;
    uint64_t count;

    if (!split_at_colon(&line, &name) || !split_at_colon(&line, &first) ||
        !read_uid(first, &begin) || !read_uid(span_trim(line), &count) || count == 0 ||
        begin + count - 1 > UINT32_MAX || name.length == 0 || *name.bytes == '#')
        return false;
    if (!find_owner(name, resolve, context, &ret_range->owner))
        ret_range->owner = SUBORDINATE_NO_OWNER;
    ret_range->first = (uint32_t)begin;
    ret_range->last = (uint32_t)(begin + count - 1);
    return true;
}

void subordinate_uids_parse(struct subordinate_uids *uids, struct span text,
                            subordinate_uids_resolver *resolve, void *context)
{
    while (text.length > 0) {
        struct subordinate_range range;
        struct subordinate_range *item;
        struct span line;

        if (!span_read_line(&text, &line)) {
            line = text;
            text.length = 0;
        }
        if (parse_line(line, resolve, context, &range) && (item = vector_append(uids)) != NULL)
            *item = range;
    }
}

static bool look_up_name(void *context, const char *name, uint32_t *ret_uid)
{
    char buffer[ENTRY_SIZE];
    struct passwd entry;
    struct passwd *found = NULL;

    (void)context;
    if (getpwnam_r(name, &entry, buffer, sizeof(buffer), &found) != 0 || found == NULL)
        return false;
    *ret_uid = found->pw_uid;
    return true;
}

static bool accept_name(void *context, const char *name, uint32_t *ret_uid)
{
    (void)context;
    (void)name;
    *ret_uid = 0;
    return true;
}

static void refresh_file(struct subordinate_uids *uids, const char *path,
                         subordinate_uids_resolver *resolve)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct text content = {0};
    struct stat status;

    if (stat(path, &status) != 0)
        status.st_mtim = (struct timespec){0};
    if (status.st_mtim.tv_sec == uids->changed.tv_sec &&
        status.st_mtim.tv_nsec == uids->changed.tv_nsec)
        return;
    subordinate_uids_finish(uids);
    uids->changed = status.st_mtim;
    if (file_read(path, FILE_SIZE_MAX, &content, &error) == 0)
        subordinate_uids_parse(uids, (struct span){text_string(&content), content.length}, resolve,
                               NULL);
    text_finish(&content);
}

void subordinate_uids_refresh(struct subordinate_uids *uids, const char *path)
{
    refresh_file(uids, path, look_up_name);
}

void subordinate_uids_refresh_ranges(struct subordinate_uids *uids, const char *path)
{
    struct subordinate_range *range;

    refresh_file(uids, path, accept_name);
    vector_for_each (range, uids)
        range->owner = range->first;
}

const struct subordinate_range *subordinate_uids_find(const struct subordinate_uids *uids,
                                                      uint32_t uid)
{
    const struct subordinate_range *without_owner = NULL;
    const struct subordinate_range *range;

    vector_for_each (range, uids) {
        if (uid < range->first || uid > range->last)
            continue;
        if (range->owner != SUBORDINATE_NO_OWNER)
            return range;
        if (without_owner == NULL)
            without_owner = range;
    }
    return without_owner;
}

uint32_t subordinate_uids_owner(const struct subordinate_uids *uids, uint32_t uid)
{
    const struct subordinate_range *range = subordinate_uids_find(uids, uid);

    return range == NULL || range->owner == SUBORDINATE_NO_OWNER ? uid : range->owner;
}

void subordinate_uids_finish(struct subordinate_uids *uids)
{
    vector_finish(uids);
    *uids = (struct subordinate_uids){0};
}
