/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/intel/intel_memory.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

_Static_assert(sizeof(struct i915_query_item) == 24 && sizeof(struct i915_query) == 16 &&
                   sizeof(struct i915_region) == 88 && sizeof(struct i915_regions) == 16 &&
                   offsetof(struct i915_region, size) == 8 &&
                   I915_REQUEST_QUERY == _IOWR('d', 0x40 + 0x39, struct i915_query),
               "the layouts must be those of i915");
_Static_assert(sizeof(struct xe_query) == 40 && sizeof(struct xe_region) == 88 &&
                   sizeof(struct xe_regions) == 8 && offsetof(struct xe_region, size) == 8 &&
                   offsetof(struct xe_query, data) == 16 &&
                   XE_REQUEST_QUERY == _IOWR('d', 0x40 + 0x00, struct xe_query),
               "the layouts must be those of xe");

/* An answer has a few hundred bytes. */
#define ANSWER_MAX 65536

static bool query_i915(const struct intel_driver *driver, struct i915_query_item *item)
{
    struct i915_query query = {.count = 1, .items = (uintptr_t)item};

    return driver->control(driver->own, I915_REQUEST_QUERY, &query) == 0 && item->length > 0 &&
           item->length <= ANSWER_MAX;
}

static bool query_xe(const struct intel_driver *driver, struct xe_query *query)
{
    return driver->control(driver->own, XE_REQUEST_QUERY, query) == 0 && query->size > 0 &&
           query->size <= ANSWER_MAX;
}

/* Adds a region of the device's own memory. The free memory is known only if it is less than the
 * total: for unprivileged processes the driver reports everything as free, but it always needs some
 * for itself. */
static void add_region(struct intel_memory *memory, uint64_t size, uint64_t free_now)
{
    if (size > INT64_MAX - memory->total.value)
        memory->answered = false;
    if (!memory->answered)
        return;
    memory->total = optional_number_of(memory->total.value + size);
    memory->free_now.value += free_now <= size ? free_now : 0;
    memory->free_now.known = memory->free_now.known || free_now < size;
}

/* Returns the sums, or unknown values if they are impossible. */
static struct intel_memory drop_invalid(struct intel_memory memory)
{
    if (!memory.answered || memory.total.value == 0)
        memory.total = (struct optional_number){0};
    if (!memory.total.known)
        memory.free_now = (struct optional_number){0};
    return memory;
}

static struct intel_memory read_i915_memory(const struct intel_driver *driver)
{
    struct i915_query_item item = {.query = I915_QUERY_REGIONS};
    struct intel_memory memory = {0};
    struct i915_regions *answer;
    size_t room;

    if (!query_i915(driver, &item))
        return memory;
    room = (size_t)item.length;
    answer = calloc(1, room + sizeof(*answer));
    item.data = (uintptr_t)answer;
    if (answer != NULL && query_i915(driver, &item) && (size_t)item.length <= room &&
        room >= sizeof(*answer) &&
        answer->count <= (room - sizeof(*answer)) / sizeof(*answer->regions)) {
        memory.answered = true;
        for (uint32_t i = 0; i < answer->count; i++)
            if (answer->regions[i].class == INTEL_REGION_OWN)
                add_region(&memory, answer->regions[i].size, answer->regions[i].unallocated);
    }
    free(answer);
    return drop_invalid(memory);
}

static struct intel_memory read_xe_memory(const struct intel_driver *driver)
{
    struct xe_query query = {.query = XE_QUERY_REGIONS};
    struct intel_memory memory = {0};
    struct xe_regions *answer;
    size_t room;

    if (!query_xe(driver, &query))
        return memory;
    room = query.size;
    answer = calloc(1, room + sizeof(*answer));
    query.data = (uintptr_t)answer;
    if (answer != NULL && query_xe(driver, &query) && query.size <= room &&
        room >= sizeof(*answer) &&
        answer->count <= (room - sizeof(*answer)) / sizeof(*answer->regions)) {
        memory.answered = true;
        for (uint32_t i = 0; i < answer->count; i++) {
            const struct xe_region *region = &answer->regions[i];

            if (region->class == INTEL_REGION_OWN)
                add_region(&memory, region->size,
                           region->used <= region->size ? region->size - region->used
                                                        : region->size);
        }
    }
    free(answer);
    return drop_invalid(memory);
}

struct intel_memory intel_memory_query(const char *name, const struct intel_driver *driver)
{
    if (name != NULL && strcmp(name, "i915") == 0)
        return read_i915_memory(driver);
    if (name != NULL && strcmp(name, "xe") == 0)
        return read_xe_memory(driver);
    return (struct intel_memory){0};
}

static int control_file(void *own, unsigned long request, void *argument)
{
    return ioctl(*(int *)own, request, argument);
}

struct intel_memory intel_memory_read(const struct sysroot *root, const struct drm_device *drm)
{
    struct intel_memory memory;
    struct text path = {0};
    int file = -1;

    if (root->recorded || drm->render == NULL)
        return (struct intel_memory){0};
    text_append_format(&path, "%s/dev/dri/%s", root->prefix, drm->render);
    if (!text_failed(&path))
        file = open(text_string(&path), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    text_finish(&path);
    if (file < 0)
        return (struct intel_memory){0};
    memory = intel_memory_query(drm->driver,
                                &(struct intel_driver){.control = control_file, .own = &file});
    close(file);
    return memory;
}
