/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/proc/fdinfo.h"

#include <string.h>

#include "base/count.h"
#include "base/text/span.h"

enum { REGIONS_MAX = 32 };

/* A memory region. */
struct region {
    char name[FDINFO_NAME_SIZE];
    struct optional_number resident;
    struct optional_number memory; /* the name of `resident` in older drivers */
    struct optional_number total;
};

struct parser {
    struct fdinfo *out;
    struct region regions[REGIONS_MAX];
    size_t region_count;
};

/* Copies a name that fits and has only visible ASCII characters. Returns whether it did. */
static bool copy_name(struct span span, char name[FDINFO_NAME_SIZE])
{
    if (span.length == 0 || span.length >= FDINFO_NAME_SIZE)
        return false;
    for (size_t i = 0; i < span.length; i++) {
        if (span.bytes[i] <= ' ' || span.bytes[i] > '~')
            return false;
    }
    memcpy(name, span.bytes, span.length);
    name[span.length] = '\0';
    return true;
}

/* Reads digits and an optional unit. Returns whether there is a number that fits. */
static bool parse_number(struct span value, uint64_t *ret_number, struct span *ret_unit)
{
    if (!span_read_number(&value, ret_number))
        return false;
    *ret_unit = span_trim(value);
    return true;
}

static void set_number_once(struct optional_number *place, uint64_t number)
{
    if (!place->known)
        *place = optional_number_of(number);
}

/* Reads a number with this unit; "": without a unit. */
static void parse_in_unit(struct optional_number *place, struct span value, const char *unit)
{
    struct span found;
    uint64_t number;

    if (parse_number(value, &number, &found) && span_equals(found, unit))
        set_number_once(place, number);
}

static void parse_bytes(struct optional_number *place, struct span value)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {{"", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}};
    struct span unit;
    uint64_t number;

    if (!parse_number(value, &number, &unit))
        return;
    for (size_t i = 0; i < COUNT(units); i++) {
        if (span_equals(unit, units[i].name) &&
            !__builtin_mul_overflow(number, units[i].factor, &number)) {
            set_number_once(place, number);
            return;
        }
    }
}

/* Returns the engine with this name, which is added if it is new. NULL if the name is invalid or if
 * there is no room. */
static struct fdinfo_engine *get_engine(struct parser *parser, struct span name)
{
    struct fdinfo *out = parser->out;
    struct fdinfo_engine *engine = out->engines;

    for (; engine < out->engines + out->engine_count; engine++) {
        if (span_equals(name, engine->name))
            return engine;
    }
    if (out->engine_count == COUNT(out->engines) || !copy_name(name, engine->name))
        return NULL;
    engine->capacity = 1;
    out->engine_count++;
    return engine;
}

static struct region *get_region(struct parser *parser, struct span name)
{
    struct region *region = parser->regions;

    for (; region < parser->regions + parser->region_count; region++) {
        if (span_equals(name, region->name))
            return region;
    }
    if (parser->region_count == COUNT(parser->regions) || !copy_name(name, region->name))
        return NULL;
    parser->region_count++;
    return region;
}

static void parse_driver(struct parser *parser, struct span name, struct span value)
{
    (void)name;
    parser->out->is_drm |= value.length > 0;
}

static void parse_pci(struct parser *parser, struct span name, struct span value)
{
    char address[FDINFO_NAME_SIZE];

    (void)name;
    if (!parser->out->pci.known && copy_name(value, address))
        (void)pci_parse(address, &parser->out->pci, NULL);
}

static void parse_client(struct parser *parser, struct span name, struct span value)
{
    (void)name;
    parse_in_unit(&parser->out->client, value, "");
}

static void parse_capacity(struct parser *parser, struct span name, struct span value)
{
    struct fdinfo_engine *engine = get_engine(parser, name);
    struct optional_number number = {0};

    parse_in_unit(&number, value, "");
    if (engine != NULL && number.known && number.value >= 1 &&
        number.value <= FDINFO_CAPACITY_MAX && engine->capacity == 1)
        engine->capacity = number.value;
}

static void parse_busy(struct parser *parser, struct span name, struct span value)
{
    struct fdinfo_engine *engine = get_engine(parser, name);

    if (engine != NULL)
        parse_in_unit(&engine->busy, value, "ns");
}

static void parse_cycles(struct parser *parser, struct span name, struct span value)
{
    struct fdinfo_engine *engine = get_engine(parser, name);

    if (engine != NULL)
        parse_in_unit(&engine->cycles, value, "");
}

static void parse_total_cycles(struct parser *parser, struct span name, struct span value)
{
    struct fdinfo_engine *engine = get_engine(parser, name);

    if (engine != NULL)
        parse_in_unit(&engine->total_cycles, value, "");
}

static void parse_resident(struct parser *parser, struct span name, struct span value)
{
    struct region *region = get_region(parser, name);

    if (region != NULL)
        parse_bytes(&region->resident, value);
}

static void parse_memory(struct parser *parser, struct span name, struct span value)
{
    struct region *region = get_region(parser, name);

    if (region != NULL)
        parse_bytes(&region->memory, value);
}

static void parse_total(struct parser *parser, struct span name, struct span value)
{
    struct region *region = get_region(parser, name);

    if (region != NULL)
        parse_bytes(&region->total, value);
}

/* Keys, or prefixes whose rest is the name of an engine or region. A prefix stands after all longer
 * ones that begin with it. */
static const struct key {
    const char *text;
    bool is_whole;
    void (*parse)(struct parser *parser, struct span name, struct span value);
} keys[] = {
    {"drm-driver", true, parse_driver},
    {"drm-pdev", true, parse_pci},
    {"drm-client-id", true, parse_client},
    {"drm-engine-capacity-", false, parse_capacity},
    {"drm-engine-", false, parse_busy},
    {"drm-cycles-", false, parse_cycles},
    {"drm-total-cycles-", false, parse_total_cycles},
    {"drm-resident-", false, parse_resident},
    {"drm-memory-", false, parse_memory},
    {"drm-total-", false, parse_total},
};

static void parse_line(struct parser *parser, struct span line)
{
    const char *colon = line.length == 0 ? NULL : memchr(line.bytes, ':', line.length);
    struct span value;

    if (colon == NULL)
        return;
    value = (struct span){colon + 1, line.length - (size_t)(colon + 1 - line.bytes)};
    line.length = (size_t)(colon - line.bytes);
    for (size_t i = 0; i < COUNT(keys); i++) {
        struct span name = line;

        if (span_skip_prefix(&name, keys[i].text) && (name.length > 0) != keys[i].is_whole) {
            keys[i].parse(parser, name, span_trim(value));
            return;
        }
    }
}

/* amdgpu and xe use vram, vram0 and vram1; i915 uses local0, and stolen-local0 for the part that
 * the firmware reserved. Plain `stolen` (xe) is a small part of either and does not count. */
static bool is_device_memory(const struct region *region)
{
    static const char *const beginnings[] = {"vram", "local", "lmem", "stolen-local"};

    for (size_t i = 0; i < COUNT(beginnings); i++) {
        if (strncmp(region->name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    }
    return false;
}

static struct optional_number region_size(const struct region *region)
{
    if (region->resident.known)
        return region->resident;
    return region->memory.known ? region->memory : region->total;
}

/* Returns the sum, unknown if no such region has a value or if the sum does not fit. */
static struct optional_number add_regions(const struct parser *parser, bool own_only)
{
    struct optional_number sum = {0};

    for (size_t i = 0; i < parser->region_count; i++) {
        struct optional_number size = region_size(&parser->regions[i]);

        if (!size.known || (own_only && !is_device_memory(&parser->regions[i])))
            continue;
        sum.known = true;
        if (__builtin_add_overflow(sum.value, size.value, &sum.value))
            return (struct optional_number){0};
    }
    return sum;
}

static struct optional_number sum_memory(const struct parser *parser)
{
    bool has_own = false;

    for (size_t i = 0; i < parser->region_count; i++)
        has_own |= is_device_memory(&parser->regions[i]);
    return add_regions(parser, has_own);
}

void fdinfo_parse(const char *bytes, size_t length, struct fdinfo *ret_fdinfo)
{
    struct parser parser = {.out = ret_fdinfo};
    struct span text = {bytes, length};
    struct span line;

    *ret_fdinfo = (struct fdinfo){0};
    while (span_read_line(&text, &line))
        parse_line(&parser, line);
    ret_fdinfo->memory = sum_memory(&parser);
}
