/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "base/text/utf8.h"

#include <berth/error.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "support/aborts.h"
#include "support/failing_allocator.h"

#define LAST_CHARACTER 0x10FFFF

static bool is_surrogate(uint32_t character)
{
    return character >= 0xD800 && character <= 0xDFFF;
}

/* The oracle knows no rules about bytes: it encodes every character by arithmetic and remembers
 * which bytes began one. */
struct oracle {
    uint32_t encoded[LAST_CHARACTER + 1]; /* the bytes as one number, big-endian */
    bool begins1[1 << 8];
    bool begins2[1 << 16];
    bool begins3[1 << 24];
};

static struct oracle *oracle;

static size_t oracle_encode(uint32_t character, unsigned char bytes[4])
{
    size_t length = 1;
    uint32_t room = 0x80; /* the first character that needs more bytes */

    while (character >= room) {
        length++;
        room = UINT32_C(1) << (5 * length + 1);
    }
    if (length == 1) {
        bytes[0] = (unsigned char)character;
        return 1;
    }
    for (size_t i = length; i-- > 0; character /= 64)
        bytes[i] = (unsigned char)(128 + character % 64);
    /* The first byte begins with as many one bits as there are bytes. */
    bytes[0] = (unsigned char)(bytes[0] - 128 + (0xFF00 >> length) % 256);
    return length;
}

static int oracle_create(void **state)
{
    (void)state;
    oracle = calloc(1, sizeof(*oracle));
    assert_non_null(oracle);
    for (uint32_t character = 0; character <= LAST_CHARACTER; character++) {
        unsigned char bytes[4];
        size_t length;
        uint32_t number = 0;

        if (is_surrogate(character))
            continue;
        length = oracle_encode(character, bytes);
        for (size_t i = 0; i < length; i++) {
            number = number << 8 | bytes[i];
            if (i == 0)
                oracle->begins1[number] = true;
            else if (i == 1)
                oracle->begins2[number] = true;
            else if (i == 2)
                oracle->begins3[number] = true;
        }
        oracle->encoded[character] = number;
    }
    return 0;
}

static int oracle_destroy(void **state)
{
    (void)state;
    free(oracle);
    oracle = NULL;
    return 0;
}

static size_t oracle_decode(const unsigned char *bytes, size_t length, uint32_t *ret_character)
{
    uint32_t number = bytes[0];
    size_t taken = 1;

    *ret_character = UTF8_REPLACEMENT;
    if (!oracle->begins1[number])
        return 1;
    if (length > 1 && oracle->begins2[number << 8 | bytes[1]]) {
        number = number << 8 | bytes[taken++];
        if (length > 2 && oracle->begins3[number << 8 | bytes[2]])
            number = number << 8 | bytes[taken++];
        if (taken == 3 && length > 3 && bytes[0] >= 0xF0 && bytes[3] >= 0x80 && bytes[3] < 0xC0)
            number = number << 8 | bytes[taken++];
    }
    /* The only possible character is the one whose bits the bytes hold. */
    if (taken == 1 && bytes[0] < 0x80)
        *ret_character = bytes[0];
    else if (taken == 2 && bytes[0] < 0xE0)
        *ret_character = (bytes[0] % 32u) * 64 + bytes[1] % 64u;
    else if (taken == 3 && bytes[0] < 0xF0)
        *ret_character = (bytes[0] % 16u) * 4096 + (bytes[1] % 64u) * 64 + bytes[2] % 64u;
    else if (taken == 4)
        *ret_character = (bytes[0] % 8u) * 262144 + (bytes[1] % 64u) * 4096 +
                         (bytes[2] % 64u) * 64 + bytes[3] % 64u;
    if (*ret_character != UTF8_REPLACEMENT)
        assert_int_equal(oracle->encoded[*ret_character], number);
    return taken;
}

/* Decodes from memory without room after the bytes, so that a sanitizer detects reads beyond. */
static void check_against_oracle(const unsigned char *bytes, size_t length)
{
    char *copy = malloc(length);
    uint32_t character;
    uint32_t wanted;
    size_t taken;

    assert_non_null(copy);
    memcpy(copy, bytes, length);
    taken = utf8_decode(copy, length, &character);
    if (taken != oracle_decode(bytes, length, &wanted) || character != wanted)
        fail_msg("%02x %02x... of %zu bytes: %zu bytes for U+%04X, not U+%04X", bytes[0],
                 length > 1 ? bytes[1] : 0u, length, taken, character, wanted);
    free(copy);
}

static void decodes_all_of_one_and_two_bytes(void **state)
{
    unsigned char bytes[2];

    (void)state;
    for (unsigned first = 0; first < 256; first++) {
        bytes[0] = (unsigned char)first;
        check_against_oracle(bytes, 1);
        for (unsigned second = 0; second < 256; second++) {
            bytes[1] = (unsigned char)second;
            check_against_oracle(bytes, 2);
        }
    }
}

/* The bytes at which the rules change. */
static const unsigned char edges[] = {0x00, 0x22, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0,
                                      0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF,
                                      0xF0, 0xF1, 0xF4, 0xF5, 0xF7, 0xF8, 0xFE, 0xFF};

static void decodes_edges_of_three_and_four_bytes(void **state)
{
    unsigned char bytes[4];

    (void)state;
    for (unsigned first = 0xC0; first < 256; first++) {
        for (unsigned second = 0; second < 256; second++) {
            for (size_t third = 0; third < COUNT(edges); third++) {
                bytes[0] = (unsigned char)first;
                bytes[1] = (unsigned char)second;
                bytes[2] = edges[third];
                check_against_oracle(bytes, 3);
                bytes[3] = edges[(third + second) % COUNT(edges)];
                check_against_oracle(bytes, 4);
                bytes[3] = (unsigned char)(0x80 + (second & 0x3F));
                check_against_oracle(bytes, 4);
            }
        }
    }
}

static void every_character_comes_back(void **state)
{
    struct text text = {0};

    (void)state;
    for (uint32_t character = 0; character <= LAST_CHARACTER; character++) {
        unsigned char wanted[4];
        size_t length;
        uint32_t found;

        if (is_surrogate(character))
            continue;
        length = oracle_encode(character, wanted);
        text_clear(&text);
        utf8_append(&text, character);
        if (text.length != length || memcmp(text.bytes, wanted, length) != 0 ||
            utf8_decode(text.bytes, text.length, &found) != length || found != character ||
            !utf8_is_valid(text.bytes, text.length))
            fail_msg("U+%04X does not come back", character);
    }
    text_finish(&text);
}

static void append_surrogate(void)
{
    utf8_append(&(struct text){0}, 0xD800);
}

static void append_beyond_last(void)
{
    utf8_append(&(struct text){0}, LAST_CHARACTER + 1);
}

static void decode_nothing(void)
{
    uint32_t character;

    utf8_decode("", 0, &character);
}

static void misuse_aborts(void **state)
{
    (void)state;
    assert_aborts(append_surrogate);
    assert_aborts(append_beyond_last);
    assert_aborts(decode_nothing);
}

/* Invalid bytes, their replacement, and their form in plain text. */
static const struct {
    const char *broken;
    const char *inert;
    const char *plain;
} repairs[] = {
    {"", "", ""},
    {"plain", "plain", "plain"},
    {"gr\xC3\xBC\xC3\x9F", "grüß", "grüß"},
    {"real \xEF\xBF\xBD", "real \uFFFD", "real \uFFFD"},
    /* continuation bytes alone */
    {"\x80", "\uFFFD", "?"},
    {"\xBF\xBF"
     "a",
     "\uFFFD\uFFFDa", "??a"},
    /* bytes that never occur in UTF-8 */
    {"\xC0\xC1\xF5\xFE\xFF", "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD", "?????"},
    /* overlong forms of '/' */
    {"\xC0\xAF", "\uFFFD\uFFFD", "??"},
    {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD", "???"},
    {"\xF0\x80\x80\xAF", "\uFFFD\uFFFD\uFFFD\uFFFD", "????"},
    /* surrogates */
    {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD", "???"},
    {"\xED\xBF\xBF", "\uFFFD\uFFFD\uFFFD", "???"},
    /* above U+10FFFF */
    {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD", "????"},
    /* cut off, at the end or by another character: one replacement for each beginning */
    {"\xC3", "\uFFFD", "?"},
    {"\xE2\x82", "\uFFFD", "??"},
    {"\xF0\x9F\x98", "\uFFFD", "???"},
    {"\xF0\x9F\x98z", "\uFFFDz", "???z"},
    {"\xE2\x82\xE2\x82\xAC", "\uFFFD€", "??€"},
    {"\xF0\x9F\xC3\xA9", "\uFFFDé", "??é"},
    /* Unicode's own example, table 3-8 */
    {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
     "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd", "a??????b?c??d"},
    /* characters that control a terminal */
    {"\033[31mred\a\n\x7F", "\uFFFD[31mred\uFFFD\uFFFD\uFFFD", "?[31mred???"},
    {"\xC2\x9B"
     "31m",
     "\uFFFD31m", "??31m"},
    {"a\u2028b\u2029c", "a\uFFFDb\uFFFDc", "a???b???c"},
    {"\u202Egnp.exe", "\uFFFDgnp.exe", "???gnp.exe"},
};

static void repairs_broken_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(repairs); i++) {
        char plain[64];
        struct text text = {0};

        utf8_append_inert(&text, repairs[i].broken);
        assert_string_equal(text_string(&text), repairs[i].inert);
        assert_true(utf8_is_valid(text_string(&text), text.length));
        assert_int_equal(utf8_width(repairs[i].broken), utf8_width(repairs[i].inert));
        assert_true(strlen(repairs[i].broken) < sizeof(plain));
        strcpy(plain, repairs[i].broken);
        utf8_make_plain(plain);
        assert_string_equal(plain, repairs[i].plain);
        text_finish(&text);
    }
}

static void valid_means_well_formed(void **state)
{
    (void)state;
    assert_true(utf8_is_valid("", 0));
    assert_true(utf8_is_valid("a\0b\033", 4));
    assert_true(utf8_is_valid("\uFFFD\U0010FFFF", 7));
    assert_false(utf8_is_valid("é", 1));
    assert_false(utf8_is_valid("ok\xC0\x80", 4));
    assert_false(utf8_is_valid("\xED\xA0\x80", 3));
}

static void boundary_is_never_inside_a_character(void **state)
{
    static const char string[] = "aé€😀z";
    static const size_t starts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};

    (void)state;
    assert_int_equal(COUNT(starts), sizeof(string));
    for (size_t limit = 0; limit < sizeof(string); limit++) {
        /* A copy that ends at the limit: no byte after it may be read. */
        char *copy = malloc(limit > 0 ? limit : 1);

        assert_non_null(copy);
        memcpy(copy, string, limit);
        assert_int_equal(utf8_boundary(string, limit), starts[limit]);
        assert_int_equal(utf8_boundary(copy, limit), starts[limit]);
        free(copy);
    }
}

static void boundary_lets_broken_bytes_be(void **state)
{
    (void)state;
    assert_int_equal(utf8_boundary("\x80\x80\x80\x80", 4), 4);
    assert_int_equal(utf8_boundary("\xC3\x80\x80", 3), 3);
    assert_int_equal(utf8_boundary("\xE0\x80", 2), 2);
    assert_int_equal(utf8_boundary("\xED\xA0", 2), 2);
    assert_int_equal(utf8_boundary("\xF4\x90", 2), 2);
    assert_int_equal(utf8_boundary("a\xFF", 2), 2);
    assert_int_equal(utf8_boundary("a\xF4", 2), 1);
}

static void characters_have_widths(void **state)
{
    static const struct {
        uint32_t character;
        unsigned width;
    } cases[] = {
        {' ', 1},     {'~', 1},     {0xAD, 1},    {0xE9, 1},    {0x2FF, 1},    {0x300, 0},
        {0x36F, 0},   {0x370, 1},   {0x5D0, 1},   {0x5B4, 0},   {0x627, 1},    {0x64E, 0},
        {0x915, 1},   {0x94D, 0},   {0xE01, 1},   {0xE34, 0},   {0x10FF, 1},   {0x1100, 2},
        {0x115F, 2},  {0x1160, 0},  {0x200B, 0},  {0x200D, 0},  {0x2026, 1},   {0x20AC, 1},
        {0x2500, 1},  {0x26A1, 2},  {0x2705, 2},  {0x2713, 1},  {0x3000, 2},   {0x3042, 2},
        {0x3099, 0},  {0x4E2D, 2},  {0xAC00, 2},  {0xD7A3, 2},  {0xFE0F, 0},   {0xFEFF, 0},
        {0xFF01, 2},  {0xFF60, 2},  {0xFF61, 1},  {0xFFFD, 1},  {0x1F320, 2},  {0x1F321, 1},
        {0x1F600, 2}, {0x1F680, 2}, {0x1FAF8, 2}, {0x20000, 2}, {0x3FFFD, 2},  {0x3FFFE, 1},
        {0xE0100, 0}, {0xE01EF, 0}, {0xE01F0, 1}, {0xF0000, 1}, {0x10FFFF, 1},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (utf8_character_width(cases[i].character) != cases[i].width)
            fail_msg("U+%04X: %u", cases[i].character, utf8_character_width(cases[i].character));
    }
    for (uint32_t character = 0x20; character < 0x300; character++)
        assert_int_equal(utf8_character_width(character), 1);
}

static void strings_have_widths(void **state)
{
    (void)state;
    assert_int_equal(utf8_width(""), 0);
    assert_int_equal(utf8_width("e\u0301te\u0301"), 3);
    assert_int_equal(utf8_width("漢字 kana"), 9);
    assert_int_equal(utf8_width("\xF0\x9F\x98"), 1);
    assert_int_equal(utf8_width("\t\x80\u202E"), 3);
}

static void knows_what_steers(void **state)
{
    (void)state;
    for (uint32_t character = 0; character <= LAST_CHARACTER; character++) {
        bool wanted = character < ' ' || (character >= 0x7F && character < 0xA0) ||
                      character == 0x2028 || character == 0x2029 || /* separators */
                      character == 0x061C || character == 0x200E || character == 0x200F ||
                      (character >= 0x202A && character <= 0x202E) ||
                      (character >= 0x2066 && character <= 0x2069);
        char bytes[5] = "";
        uint32_t inert;

        if (utf8_is_control(character) != wanted)
            fail_msg("U+%04X", character);
        if (is_surrogate(character))
            continue;
        utf8_decode_inert(bytes, oracle_encode(character, (unsigned char *)bytes), &inert);
        if (inert != (wanted ? UTF8_REPLACEMENT : character))
            fail_msg("U+%04X became U+%04X", character, inert);
    }
}

static int append_much(void *context)
{
    struct text text = {0};
    int result;

    (void)context;
    utf8_append_inert(&text, "long enough to grow more than once, with \xFF and \u202E in it");
    result = text_failed(&text) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&text);
    return result;
}

static void survives_lack_of_memory(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(append_much, NULL) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(decodes_all_of_one_and_two_bytes, oracle_create,
                                        oracle_destroy),
        cmocka_unit_test_setup_teardown(decodes_edges_of_three_and_four_bytes, oracle_create,
                                        oracle_destroy),
        cmocka_unit_test(every_character_comes_back),
        cmocka_unit_test(misuse_aborts),
        cmocka_unit_test(repairs_broken_text),
        cmocka_unit_test(valid_means_well_formed),
        cmocka_unit_test(boundary_is_never_inside_a_character),
        cmocka_unit_test(boundary_lets_broken_bytes_be),
        cmocka_unit_test(characters_have_widths),
        cmocka_unit_test(strings_have_widths),
        cmocka_unit_test(knows_what_steers),
        cmocka_unit_test(survives_lack_of_memory),
    };

    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
