/* SPDX-License-Identifier: Apache-2.0
 *
 * Structs as bytes and back, by tables: one row for each member, known by its tag. The journal and
 * the messages of the protocol are made of these fields. All numbers are little-endian. A field is
 *
 *     u16  tag
 *     u32  how many bytes the value has
 *          the value
 *
 * Fields come in any order. One that is missing has its default, which is 0, none or empty unless
 * the table says otherwise; writers leave those out. A known tag given twice is refused. A reader
 * ignores tags that it does not know, except from TAGGED_MANDATORY on: those it must refuse,
 * because the whole means something else without them. So later versions add tags, and read what
 * earlier ones wrote. Numbers of tags and enums are never changed or used again.
 *
 * Values:
 *
 *     number    0 to 8 bytes: the zero bytes at the high end are left out (and accepted), so 0 has
 *               no byte. Negative ones are the 8 bytes of their two's complement.
 *     flag      a number, 0 or 1
 *     maybe     a number that is known if the field is there
 *     text      bytes without a zero byte; none if the field is missing, which is not the same as
 *               an empty one
 *     list      of u32
 *     id        a device id: u8 vendor, u32 index, u32 MIG instance (DEVICE_NO_MIG: a whole GPU)
 *     ids       device ids, one after the other
 *     pci       u32 domain, u8 bus, u8 device, u8 function
 *     figure    i64 value, i64 time of the sample; known if the field is there
 *     strings   texts, each: u32 length, bytes
 *     fields    fields within, with tags of their own
 *     items     structs, each: u32 length, fields
 *
 * A value that is longer or larger than its limit is refused, and so is a struct without a field
 * that it requires. For an enum, the table chooses: where a reader has to act by the value, the
 * limit is the largest that it knows; where it only shows it, any number is kept, so that a later
 * version may say more. Pure; any thread may call these.
 */
#ifndef CODEC_TAGGED_H
#define CODEC_TAGGED_H

#include <berth/error.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text/text.h"

#define TAGGED_FIELD_SIZE 6      /* of a field without its value */
#define TAGGED_MANDATORY  0x8000 /* the first tag that is not to be ignored */
#define TAGGED_ALL_TYPES  UINT32_MAX

struct tagged_field;

/* What is read from, in which kind of record, and where a failure is told. */
struct tagged_reading {
    const unsigned char *bytes;
    uint32_t type_bit; /* a bit for the kind of whole; defaults may depend on it */
    struct berth_error *error;
};

/* Bytes by their places in the whole. */
struct tagged_span {
    size_t at;
    size_t end;
};

/* What the member looks like: most fields are missing, and this says so without a call. */
enum tagged_shape {
    TAGGED_SHAPE_OTHER,
    TAGGED_SHAPE_NUMBER,  /* `size` bytes */
    TAGGED_SHAPE_POINTER, /* begins with a pointer; NULL is the default, and owns nothing */
};

/* A kind of value. `whole` is the struct that the table describes. */
struct tagged_kind {
    enum tagged_shape shape;

    /* Whether the member is what a reader takes when the field is missing. */
    bool (*is_default)(const struct tagged_field *field, uint32_t type_bit, const void *whole);

    /* Appends the value. Returns 0 or BERTH_ERROR_INVALID; the text remembers a failed
     * allocation. */
    int (*write)(const struct tagged_field *field, const void *whole, struct text *out);

    /* Makes a zeroed member the default; NULL: it is. */
    void (*reset)(const struct tagged_field *field, uint32_t type_bit, void *whole);

    /* Reads the value. What it allocates is in the member even when it fails. */
    int (*read)(const struct tagged_reading *reading, const struct tagged_field *field,
                struct tagged_span value, void *whole);

    /* Frees what `read` allocated; NULL: nothing. */
    void (*finish)(const struct tagged_field *field, void *whole);
};

/* What a table comes to, worked out when it is first used: its tags as bits. A message has few of
 * the fields that there are; this finds them without looking at each. Zeroed memory is one that was
 * not worked out yet. */
#define TAGGED_WORDS 64
struct tagged_digest {
    int state;
    uint64_t always;   /* to be looked at whatever the bytes of the member are */
    uint64_t required; /* refused when missing */
    uint64_t reset;    /* not zero by default */
    uint64_t owning;
    uint64_t of_word[TAGGED_WORDS]; /* with bytes in that word of the struct; 0 is the default */
};

struct tagged_table {
    const struct tagged_field *fields; /* by tag; those without a kind are unknown */
    size_t count;                      /* at most 64 */
    size_t size;                       /* of the struct */
    struct tagged_digest *digest;      /* NULL: it is worked out each time */
};

struct tagged_field {
    const char *name; /* for messages */
    const struct tagged_kind *kind;
    uint64_t max;    /* the largest number, the longest list or text */
    uint32_t offset; /* of the member */
    uint8_t size;    /* of a number, in bytes */
    uint8_t count_size;
    bool required; /* no struct is without it: refused when missing or none, 0, empty */

    /* What a number is when the field is missing, in records of these types (0: all); 0 in
     * others. */
    uint32_t default_types;
    uint64_t default_value;

    uint32_t count_offset; /* of a list's number of items, `count_size` bytes */
    const struct tagged_table *inner;
};

/* An unsigned or signed number, an enum or bool of `size` bytes, up to `most`. */
extern const struct tagged_kind tagged_number;
/* struct optional_number. */
extern const struct tagged_kind tagged_maybe;
/* struct capability. */
extern const struct tagged_kind tagged_capability;
/* char *, up to `most` bytes. */
extern const struct tagged_kind tagged_text;
/* The same for people to read: what is longer is written cut, and ends in "...". */
extern const struct tagged_kind tagged_words;
/* const uint32_t * with the count elsewhere, up to `most`. */
extern const struct tagged_kind tagged_list;
/* struct device_id_list. */
extern const struct tagged_kind tagged_ids;
/* const struct device_id_list *, NULL: none. */
extern const struct tagged_kind tagged_maybe_ids;
/* A pointer to the struct of the table `inner`, NULL: none. */
extern const struct tagged_kind tagged_inner;

/* struct device_id. */
extern const struct tagged_kind tagged_id;
/* struct pci_address. */
extern const struct tagged_kind tagged_pci;
/* struct figure. */
extern const struct tagged_kind tagged_figure;
/* struct string_list, up to `most` strings. */
extern const struct tagged_kind tagged_strings;
/* A vector of the struct of the table `inner`, up to `most` of them. */
extern const struct tagged_kind tagged_items;

/* What every row says of a member. */
#define TAGGED_MEMBER(type, member, kind_name) \
    .name = #member, .kind = &tagged_##kind_name, .offset = offsetof(struct type, member)
#define TAGGED_NUMBER(type, member, largest)                                            \
    TAGGED_MEMBER(type, member, number), .size = sizeof(((struct type *)NULL)->member), \
                                         .max = (largest)
#define TAGGED_COUNTED_BY(type, member)            \
    .count_offset = offsetof(struct type, member), \
    .count_size = sizeof(((struct type *)NULL)->member)

/* The table of `struct type` that has these rows. */
#define TAGGED_TABLE(type, rows)                                                                  \
    {                                                                                             \
        .fields = (rows), .count = sizeof(rows) / sizeof((rows)[0]), .size = sizeof(struct type), \
        .digest = &(struct tagged_digest){0},                                                     \
    }

/* Little-endian numbers of up to 8 bytes. Where the host is little-endian too, they are copied. */
static inline void tagged_put(unsigned char *bytes, uint64_t number, size_t size)
{
    number = htole64(number);
    memcpy(bytes, &number, size);
}

static inline uint64_t tagged_get(const unsigned char *bytes, size_t size)
{
    uint64_t number = 0;

    memcpy(&number, bytes, size);
    return le64toh(number);
}

/* Appends the fields that are not at their defaults. Returns 0 or BERTH_ERROR_INVALID, for what
 * could not be read again: a value beyond its limit, a required field at its default. The text
 * remembers a failed allocation. */
int tagged_write(const struct tagged_table *table, uint32_t type_bit, const void *whole,
                 struct text *out);

/* Reads fields into a zeroed struct. Whatever it returns, the struct is to be finished. */
int tagged_read(const struct tagged_reading *reading, const struct tagged_table *table,
                struct tagged_span span, void *whole);
void tagged_finish(const struct tagged_table *table, void *whole);

/* The same for a packet that holds one struct and nothing else. Returns also BERTH_ERROR_MEMORY. */
int tagged_pack(const struct tagged_table *table, const void *whole, struct text *out);
/* Reads it into a zeroed struct, which needs no finishing if that fails. */
int tagged_unpack(const struct tagged_table *table, const unsigned char *bytes, size_t length,
                  void *whole, struct berth_error *error);

#endif
