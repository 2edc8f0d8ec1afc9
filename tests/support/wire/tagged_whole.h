/* SPDX-License-Identifier: Apache-2.0
 *
 * A struct with one member for each kind of tagged field, and its table.
 */
#ifndef TESTS_TAGGED_WHOLE_H
#define TESTS_TAGGED_WHOLE_H

#include "support/unit.h"

#include <stdlib.h>

#include "base/count.h"
#include "base/string_list.h"
#include "codec/tagged.h"
#include "model/machine/device.h"
#include "support/engine/machines.h"

struct part {
    uint32_t count;
    char *text;
};

enum { FIRST_TYPE = 1, SECOND_TYPE = 2 };

struct whole {
    uint64_t wide;
    uint32_t middle;
    uint16_t narrow;
    uint8_t tiny;
    bool flag;
    int64_t time;
    uint32_t preset; /* the default is 7 in FIRST_TYPE only */
    struct optional_number maybe;
    struct capability cap;
    char *text;
    char *words;
    const uint32_t *list;
    uint16_t list_count;
    struct device_id_list ids;
    const struct device_id_list *maybe_ids;
    struct part *below;
    struct device_id id;
    struct pci_address pci;
    struct figure figure;
    struct string_list strings;
    struct {
        VECTOR_OF(struct part);
    } items;
};

enum { PART_COUNT = 1, PART_TEXT = 3 };

static const struct tagged_field part_fields[] = {
    [PART_COUNT] = {TAGGED_NUMBER(part, count, 9), .default_value = 2},
    [PART_TEXT] = {TAGGED_MEMBER(part, text, text), .max = 4, .required = true},
};

static const struct tagged_table part_table = {
    .fields = part_fields,
    .count = COUNT(part_fields),
    .size = sizeof(struct part),
};

enum whole_tag {
    TAG_WIDE = 1,
    TAG_MIDDLE,
    TAG_NARROW,
    TAG_TINY,
    TAG_FLAG,
    TAG_TIME,
    TAG_PRESET,
    TAG_MAYBE,
    TAG_CAP,
    TAG_TEXT,
    TAG_LIST,
    TAG_IDS,
    TAG_MAYBE_IDS,
    TAG_BELOW,
    TAG_ID,
    TAG_PCI,
    TAG_FIGURE,
    TAG_STRINGS,
    TAG_WORDS,
    TAG_ITEMS = 63, /* the largest possible tag */
};

static const struct tagged_field whole_fields[] = {
    [TAG_WIDE] = {TAGGED_NUMBER(whole, wide, UINT64_MAX)},
    [TAG_MIDDLE] = {TAGGED_NUMBER(whole, middle, 1000)},
    [TAG_NARROW] = {TAGGED_NUMBER(whole, narrow, UINT16_MAX)},
    [TAG_TINY] = {TAGGED_NUMBER(whole, tiny, UINT8_MAX)},
    [TAG_FLAG] = {TAGGED_NUMBER(whole, flag, true)},
    [TAG_TIME] = {TAGGED_NUMBER(whole, time, UINT64_MAX)},
    [TAG_PRESET] = {TAGGED_NUMBER(whole, preset, UINT32_MAX), .default_value = 7,
                    .default_types = FIRST_TYPE},
    [TAG_MAYBE] = {TAGGED_MEMBER(whole, maybe, maybe), .max = 500},
    [TAG_CAP] = {TAGGED_MEMBER(whole, cap, capability), .max = UINT32_MAX},
    [TAG_TEXT] = {TAGGED_MEMBER(whole, text, text), .max = 8},
    [TAG_WORDS] = {TAGGED_MEMBER(whole, words, words), .max = 5},
    [TAG_LIST] = {TAGGED_MEMBER(whole, list, list), .max = 3, TAGGED_COUNTED_BY(whole, list_count)},
    [TAG_IDS] = {TAGGED_MEMBER(whole, ids, ids), .max = 2},
    [TAG_MAYBE_IDS] = {TAGGED_MEMBER(whole, maybe_ids, maybe_ids), .max = 2},
    [TAG_BELOW] = {TAGGED_MEMBER(whole, below, inner), .inner = &part_table},
    [TAG_ID] = {TAGGED_MEMBER(whole, id, id)},
    [TAG_PCI] = {TAGGED_MEMBER(whole, pci, pci)},
    [TAG_FIGURE] = {TAGGED_MEMBER(whole, figure, figure)},
    [TAG_STRINGS] = {TAGGED_MEMBER(whole, strings, strings), .max = 2},
    [TAG_ITEMS] = {TAGGED_MEMBER(whole, items, items), .max = 2, .inner = &part_table},
};
_Static_assert(COUNT(whole_fields) == 64, "a table has at most 64 fields");

static const struct tagged_table whole_table = {
    .fields = whole_fields,
    .count = COUNT(whole_fields),
    .size = sizeof(struct whole),
};

static inline void add_part(struct whole *whole, uint32_t count, const char *text)
{
    struct part *part = vector_append(&whole->items);

    assert_non_null(part);
    *part = (struct part){count, copy_of(text)};
}

/* Returns a struct with every member set. The caller finishes it with tagged_finish(). */
static inline struct whole full_whole(void)
{
    uint32_t *list = malloc(2 * sizeof(*list));
    struct device_id_list *ids = calloc(1, sizeof(*ids));
    struct part *below = malloc(sizeof(*below));
    struct whole whole = {
        .wide = UINT64_MAX,
        .middle = 1000,
        .narrow = 0x1234,
        .tiny = 0xFF,
        .flag = true,
        .time = INT64_MIN,
        .preset = 3,
        .maybe = optional_number_of(500),
        .cap = {.known = true, .major = 8, .minor = 10},
        .text = copy_of("12345678"),
        .words = copy_of("12345"),
        .list = list,
        .list_count = 2,
        .maybe_ids = ids,
        .below = below,
        .id = id_of("dri7"),
        .pci = {.known = true, .domain = 0x10000, .bus = 0xFF, .device = 31, .function = 7},
        .figure = load_figure_sampled(-5, INT64_MAX),
    };

    assert_true(list != NULL && ids != NULL && below != NULL);
    list[0] = 1;
    list[1] = UINT32_MAX;
    *below = (struct part){9, copy_of("")};
    assert_int_equal(device_id_list_parse(&whole.ids, "nvidia0,nvidia1.999999", NULL), 0);
    assert_int_equal(device_id_list_parse(ids, "amd3", NULL), 0);
    assert_int_equal(string_list_append(&whole.strings, ""), 0);
    assert_int_equal(string_list_append(&whole.strings, "two"), 0);
    add_part(&whole, 2, "a");
    add_part(&whole, 0, "b");
    return whole;
}

static inline void check_full(const struct whole *whole)
{
    assert_true(whole->wide == UINT64_MAX && whole->middle == 1000 && whole->narrow == 0x1234);
    assert_true(whole->tiny == 0xFF && whole->flag && whole->time == INT64_MIN);
    assert_true(whole->preset == 3 && whole->maybe.known && whole->maybe.value == 500);
    assert_true(whole->cap.known && whole->cap.major == 8 && whole->cap.minor == 10);
    assert_string_equal(whole->text, "12345678");
    assert_string_equal(whole->words, "12345");
    assert_int_equal(whole->list_count, 2);
    assert_true(whole->list[0] == 1 && whole->list[1] == UINT32_MAX);
    assert_int_equal(whole->ids.count, 2);
    assert_true(device_id_equals(whole->ids.items[1], id_of("nvidia1.999999")));
    assert_true(device_id_equals(whole->maybe_ids->items[0], id_of("amd3")));
    assert_true(whole->below->count == 9 && whole->below->text[0] == '\0');
    assert_true(device_id_equals(whole->id, id_of("dri7")));
    assert_string_equal(pci_format(whole->pci).text, "10000:ff:1f.7");
    assert_true(whole->figure.known && whole->figure.value == -5);
    assert_true(whole->figure.sampled_at == INT64_MAX);
    assert_int_equal(whole->strings.count, 2);
    assert_string_equal(whole->strings.items[0], "");
    assert_string_equal(whole->strings.items[1], "two");
    assert_int_equal(whole->items.count, 2);
    assert_true(whole->items.items[0].count == 2 && whole->items.items[1].count == 0);
    assert_string_equal(whole->items.items[1].text, "b");
}

#endif
