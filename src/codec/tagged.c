/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/tagged.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "codec/tagged_internal.h"

static inline __attribute__((always_inline)) bool is_default(const struct tagged_field *field,
                                                             uint32_t type_bit, const void *whole)
{
    const struct tagged_kind *kind = field->kind;

    if (kind->shape == TAGGED_SHAPE_NUMBER)
        return tagged_load(tagged_const_member(whole, field->offset), field->size) ==
               tagged_default(field, type_bit);
    if (kind->shape == TAGGED_SHAPE_POINTER && tagged_load_pointer(field, whole) == NULL)
        return true;
    return kind->is_default(field, type_bit, whole);
}

/* ---- Digests ---- */

enum { DIGEST_NONE, DIGEST_BEGUN, DIGEST_READY };

static void add_words(struct tagged_digest *digest, size_t tag, size_t offset, size_t size)
{
    for (size_t word = offset / 8; word <= (offset + size - 1) / 8; word++)
        digest->of_word[word] |= UINT64_C(1) << tag;
}

static void digest_field(const struct tagged_table *table, size_t tag, struct tagged_digest *digest)
{
    const struct tagged_field *field = &table->fields[tag];
    enum tagged_shape shape = field->kind->shape;
    size_t size = shape == TAGGED_SHAPE_NUMBER ? field->size : sizeof(void *);
    uint64_t bit = UINT64_C(1) << tag;

    digest->known |= bit;
    if (field->required)
        digest->required |= bit;
    if (field->kind->reset != NULL && field->default_value != 0)
        digest->reset |= bit;
    if (field->kind->finish != NULL)
        digest->owning |= bit;
    if (shape == TAGGED_SHAPE_OTHER || field->required || field->default_value != 0 ||
        field->offset + size > table->size / 8 * 8 || table->size / 8 > TAGGED_WORDS)
        digest->always |= bit;
    else
        add_words(digest, tag, field->offset, size);
}

static void make_digest(const struct tagged_table *table, struct tagged_digest *digest)
{
    *digest = (struct tagged_digest){.state = DIGEST_BEGUN};
    for (size_t tag = 0; tag < table->count; tag++) {
        if (table->fields[tag].kind != NULL)
            digest_field(table, tag, digest);
    }
}

/* Returns the table's digest, or one in `room` while another thread computes the table's. */
static const struct tagged_digest *get_digest(const struct tagged_table *table,
                                              struct tagged_digest *room)
{
    struct tagged_digest *own = table->digest;
    int state = own == NULL ? DIGEST_BEGUN : __atomic_load_n(&own->state, __ATOMIC_ACQUIRE);

    if (state == DIGEST_READY)
        return own;
    /* The first thread computes it for all. */
    if (state == DIGEST_NONE &&
        __atomic_compare_exchange_n(&own->state, &state, DIGEST_BEGUN, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_ACQUIRE)) {
        make_digest(table, room);
        own->known = room->known;
        own->always = room->always;
        own->required = room->required;
        own->reset = room->reset;
        own->owning = room->owning;
        memcpy(own->of_word, room->of_word, sizeof(own->of_word));
        __atomic_store_n(&own->state, DIGEST_READY, __ATOMIC_RELEASE);
        return own;
    }
    make_digest(table, room);
    return room;
}

/* Returns the tags whose members may differ from their default. */
static uint64_t find_candidates(const struct tagged_table *table,
                                const struct tagged_digest *digest, const void *whole)
{
    size_t words = table->size / 8 > TAGGED_WORDS ? 0 : table->size / 8;
    uint64_t candidates = digest->always;

    for (size_t i = 0; i < words; i++) {
        uint64_t word;

        memcpy(&word, tagged_const_member(whole, i * 8), sizeof(word));
        candidates |= word != 0 ? digest->of_word[i] : 0;
    }
    return candidates;
}

/* Runs `tag` over the bits of a set of 64. */
#define tag_for_each(tag, set)                                                   \
    for (uint64_t tag##_left = (set), tag = 0;                                   \
         tag##_left != 0 && (tag = (uint64_t)__builtin_ctzll(tag##_left), true); \
         tag##_left &= tag##_left - 1)

/* ---- Writing ---- */

/* Writes a field of the most common kind without calls by pointer. */
static int write_number(const struct tagged_field *field, size_t tag, uint64_t number,
                        struct text *out)
{
    size_t size = number == 0 ? 0 : 8 - (size_t)__builtin_clzll(number) / 8;
    unsigned char *place;

    if (number > field->max)
        return BERTH_ERROR_INVALID;
    place = text_reserve(out, TAGGED_FIELD_SIZE + sizeof(number));
    if (place == NULL)
        return 0;
    tagged_put(place, tag, 2);
    tagged_put(place + 2, size, 4);
    tagged_put(place + TAGGED_FIELD_SIZE, number, sizeof(number));
    text_commit(out, TAGGED_FIELD_SIZE + size);
    return 0;
}

static int write_field(const struct tagged_table *table, size_t tag, uint32_t type_bit,
                       const void *whole, struct text *out)
{
    const struct tagged_field *field = &table->fields[tag];
    size_t start = out->length;
    int code;

    if (is_default(field, type_bit, whole))
        return field->required ? BERTH_ERROR_INVALID : 0;
    if (field->kind->shape == TAGGED_SHAPE_NUMBER)
        return write_number(
            field, tag, tagged_load(tagged_const_member(whole, field->offset), field->size), out);
    if (text_reserve(out, TAGGED_FIELD_SIZE) == NULL)
        return 0;
    text_commit(out, TAGGED_FIELD_SIZE);
    code = field->kind->write(field, whole, out);
    if (code < 0 || text_failed(out))
        return code;
    tagged_put((unsigned char *)out->bytes + start, tag, 2);
    tagged_put((unsigned char *)out->bytes + start + 2, out->length - start - TAGGED_FIELD_SIZE, 4);
    return 0;
}

int tagged_write_set(const struct tagged_table *table, uint64_t tags, uint32_t type_bit,
                     const void *whole, struct text *out)
{
    struct tagged_digest room;
    const struct tagged_digest *digest = get_digest(table, &room);
    uint64_t candidates = find_candidates(table, digest, whole);

    tag_for_each (tag, candidates & tags) {
        int code = write_field(table, tag, type_bit, whole, out);

        if (code < 0)
            return code;
    }
    tag_for_each (other, candidates & ~tags)
        assert(is_default(&table->fields[other], type_bit, whole));
    return 0;
}

int tagged_write(const struct tagged_table *table, uint32_t type_bit, const void *whole,
                 struct text *out)
{
    return tagged_write_set(table, TAGGED_ALL_TAGS, type_bit, whole, out);
}

/* Reads the tag and the value's range of the field at span->at, and moves to the next field. */
static int read_field_header(const struct tagged_reading *reading, struct tagged_span *span,
                             size_t *ret_tag, struct tagged_span *ret_value)
{
    size_t left = span->end - span->at;
    size_t length;

    if (left < TAGGED_FIELD_SIZE)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected a field of at least %d bytes, got %zu at byte %zu",
                         TAGGED_FIELD_SIZE, left, span->at);
    left -= TAGGED_FIELD_SIZE;
    length = tagged_get(reading->bytes + span->at + 2, 4);
    if (length > left)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected a value of at most %zu bytes, got %zu at byte %zu", left, length,
                         span->at);
    *ret_tag = tagged_get(reading->bytes + span->at, 2);
    ret_value->at = span->at + TAGGED_FIELD_SIZE;
    ret_value->end = ret_value->at + length;
    span->at = ret_value->end;
    return 0;
}

/* Reads the field if its tag is in the set `known`. */
static int read_field(const struct tagged_reading *reading, const struct tagged_table *table,
                      uint64_t known, size_t tag, struct tagged_span value, uint64_t *seen,
                      void *whole)
{
    const struct tagged_field *field;

    if (tag >= table->count || (known >> tag & 1) == 0) {
        if (tag < TAGGED_MANDATORY)
            return 0;
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected fields that this version knows, got mandatory field "
                         "%zu at byte %zu",
                         tag, value.at - TAGGED_FIELD_SIZE);
    }
    field = &table->fields[tag];
    if ((*seen >> tag & 1) != 0)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "expected %s once, got it again at byte %zu", field->name,
                         value.at - TAGGED_FIELD_SIZE);
    *seen |= UINT64_C(1) << tag;
    return field->kind->read(reading, field, value, whole);
}

/* Checks that all required fields are present. `span` is the struct's range, for the message. */
static int check_required(const struct tagged_reading *reading, const struct tagged_table *table,
                          struct tagged_span span, uint64_t required, uint64_t seen,
                          const void *whole)
{
    tag_for_each (tag, required) {
        const struct tagged_field *field = &table->fields[tag];

        if ((seen >> tag & 1) == 0 || is_default(field, reading->type_bit, whole))
            return error_set(reading->error, BERTH_ERROR_SYNTAX,
                             "expected %s, got none in the %zu bytes at byte %zu", field->name,
                             span.end - span.at, span.at);
    }
    return 0;
}

int tagged_read_set(const struct tagged_reading *reading, const struct tagged_table *table,
                    uint64_t tags, struct tagged_span span, void *whole)
{
    const struct tagged_span all = span;
    struct tagged_digest room;
    const struct tagged_digest *digest = get_digest(table, &room);
    uint64_t known = digest->known & tags;
    uint64_t seen = 0;
    int code = 0;

    tag_for_each (tag, digest->reset)
        table->fields[tag].kind->reset(&table->fields[tag], reading->type_bit, whole);
    while (span.at < span.end && code == 0) {
        struct tagged_span value = {0};
        size_t tag = 0;

        code = read_field_header(reading, &span, &tag, &value);
        if (code == 0)
            code = read_field(reading, table, known, tag, value, &seen, whole);
    }
    return code < 0 ? code
                    : check_required(reading, table, all, digest->required & tags, seen, whole);
}

int tagged_read(const struct tagged_reading *reading, const struct tagged_table *table,
                struct tagged_span span, void *whole)
{
    return tagged_read_set(reading, table, TAGGED_ALL_TAGS, span, whole);
}

void tagged_finish(const struct tagged_table *table, void *whole)
{
    struct tagged_digest room;
    const struct tagged_digest *digest = get_digest(table, &room);

    tag_for_each (tag, find_candidates(table, digest, whole) & digest->owning)
        table->fields[tag].kind->finish(&table->fields[tag], whole);
}

int tagged_pack(const struct tagged_table *table, const void *whole, struct text *out)
{
    int code = tagged_write(table, TAGGED_ALL_TYPES, whole, out);

    return code == 0 && text_failed(out) ? BERTH_ERROR_MEMORY : code;
}

int tagged_unpack(const struct tagged_table *table, const unsigned char *bytes, size_t length,
                  void *whole, struct berth_error *error)
{
    const struct tagged_reading reading = {
        .bytes = bytes, .type_bit = TAGGED_ALL_TYPES, .error = error};
    int code = tagged_read(&reading, table, (struct tagged_span){0, length}, whole);

    if (code < 0)
        tagged_finish(table, whole);
    return code;
}
