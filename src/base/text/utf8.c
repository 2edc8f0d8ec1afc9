/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/utf8.h"

#include <assert.h>
#include <string.h>

#include "base/count.h"

struct character_range {
    uint32_t first;
    uint32_t last;
};

/* Both tables follow Unicode 14. Ranges are joined when only unassigned characters are between
 * them, and extend to the end of a block that is reserved for similar characters.
 *
 * This table has nonspacing marks, enclosing marks and format characters: those of no script, and
 * those of the most common scripts. Marks of other scripts count as one column, because terminals
 * disagree about them. Then a cell may end a column early. */
static const struct character_range zero_columns[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x05BF, 0x05BF},   {0x05C1, 0x05C2},
    {0x05C4, 0x05C5}, {0x05C7, 0x05C7}, {0x0600, 0x0605},   {0x0610, 0x061A},   {0x061C, 0x061C},
    {0x064B, 0x065F}, {0x0670, 0x0670}, {0x06D6, 0x06DD},   {0x06DF, 0x06E4},   {0x06E7, 0x06E8},
    {0x06EA, 0x06ED}, {0x07A6, 0x07B0}, {0x0890, 0x089F},   {0x08CA, 0x0902},   {0x093A, 0x093A},
    {0x093C, 0x093C}, {0x0941, 0x0948}, {0x094D, 0x094D},   {0x0951, 0x0957},   {0x0962, 0x0963},
    {0x0981, 0x0981}, {0x09BC, 0x09BC}, {0x09C1, 0x09C4},   {0x09CD, 0x09CD},   {0x09E2, 0x09E3},
    {0x09FE, 0x09FE}, {0x0B82, 0x0B82}, {0x0BC0, 0x0BC0},   {0x0BCD, 0x0BCD},   {0x0C00, 0x0C00},
    {0x0C04, 0x0C04}, {0x0C3C, 0x0C3C}, {0x0C3E, 0x0C40},   {0x0C46, 0x0C56},   {0x0C62, 0x0C63},
    {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},   {0x0EB1, 0x0EB1},   {0x0EB4, 0x0EBC},
    {0x0EC8, 0x0ECD}, {0x1160, 0x11FF}, {0x180B, 0x180F},   {0x1AB0, 0x1ACE},   {0x1DC0, 0x1DFF},
    {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x206F},   {0x20D0, 0x20F0},   {0x2DE0, 0x2DFF},
    {0x302A, 0x302D}, {0x3099, 0x309A}, {0xD7B0, 0xD7FB},   {0xFE00, 0xFE0F},   {0xFE20, 0xFE2F},
    {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0001, 0xE007F}, {0xE0100, 0xE01EF},
};

/* East Asian wide and fullwidth characters, including emoji. */
static const struct character_range two_columns[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x23F0, 0x23F0},   {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267F, 0x267F},   {0x2693, 0x2693},   {0x26A1, 0x26A1},
    {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},   {0x26CE, 0x26CE},
    {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},
    {0x2728, 0x2728},   {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27B0, 0x27B0},   {0x27BF, 0x27BF},
    {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},   {0x2E80, 0x3029},
    {0x302E, 0x303E},   {0x3041, 0x3096},   {0x309B, 0x3247},   {0x3250, 0x4DBF},
    {0x4E00, 0xA4C6},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE10, 0xFE19},   {0xFE30, 0xFE6B},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x16FE0, 0x16FE3}, {0x16FF0, 0x18D08}, {0x1AFF0, 0x1B2FB}, {0x1F004, 0x1F004},
    {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F320},
    {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C}, {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA},
    {0x1F3CF, 0x1F3D3}, {0x1F3E0, 0x1F3F0}, {0x1F3F4, 0x1F3F4}, {0x1F3F8, 0x1F43E},
    {0x1F440, 0x1F440}, {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D}, {0x1F54B, 0x1F54E},
    {0x1F550, 0x1F567}, {0x1F57A, 0x1F57A}, {0x1F595, 0x1F596}, {0x1F5A4, 0x1F5A4},
    {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5}, {0x1F6CC, 0x1F6CC}, {0x1F6D0, 0x1F6D2},
    {0x1F6D5, 0x1F6DF}, {0x1F6EB, 0x1F6EC}, {0x1F6F4, 0x1F6FC}, {0x1F7E0, 0x1F7F0},
    {0x1F90C, 0x1F93A}, {0x1F93C, 0x1F945}, {0x1F947, 0x1F9FF}, {0x1FA70, 0x1FAFF},
    {0x20000, 0x3FFFD},
};

/* The result of decoding: the character and its length when length == wanted. Otherwise `length` is
 * that of the longest prefix of a character, and `wanted` is the length of that character (0 when
 * no character begins with these bytes). */
struct sequence {
    uint32_t character;
    size_t length;
    size_t wanted;
};

/* Decodes the lead byte, and returns the bounds of the second byte. They are narrower than those of
 * other continuation bytes, to exclude overlong forms, surrogates and numbers above U+10FFFF. */
static struct sequence read_lead(unsigned char lead, unsigned char *ret_low,
                                 unsigned char *ret_high)
{
    *ret_low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    *ret_high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (lead < 0x80)
        return (struct sequence){.character = lead, .length = 1, .wanted = 1};
    if (lead >= 0xC2 && lead <= 0xDF)
        return (struct sequence){.character = lead & 0x1F, .length = 1, .wanted = 2};
    if (lead >= 0xE0 && lead <= 0xEF)
        return (struct sequence){.character = lead & 0x0F, .length = 1, .wanted = 3};
    if (lead >= 0xF0 && lead <= 0xF4)
        return (struct sequence){.character = lead & 0x07, .length = 1, .wanted = 4};
    return (struct sequence){.character = UTF8_REPLACEMENT, .length = 1, .wanted = 0};
}

static struct sequence read_sequence(const char *bytes, size_t length)
{
    unsigned char low;
    unsigned char high;
    struct sequence sequence = read_lead((unsigned char)bytes[0], &low, &high);

    while (sequence.length < sequence.wanted && sequence.length < length) {
        unsigned char byte = (unsigned char)bytes[sequence.length];

        if (byte < low || byte > high)
            break;
        sequence.character = sequence.character << 6 | (byte & 0x3F);
        sequence.length++;
        low = 0x80;
        high = 0xBF;
    }
    if (sequence.length != sequence.wanted)
        sequence.character = UTF8_REPLACEMENT;
    return sequence;
}

size_t utf8_decode(const char *bytes, size_t length, uint32_t *ret_character)
{
    struct sequence sequence;

    assert(length > 0);
    sequence = read_sequence(bytes, length);
    *ret_character = sequence.character;
    return sequence.length;
}

size_t utf8_decode_inert(const char *bytes, size_t length, uint32_t *ret_character)
{
    size_t taken = utf8_decode(bytes, length, ret_character);

    if (utf8_is_control(*ret_character))
        *ret_character = UTF8_REPLACEMENT;
    return taken;
}

bool utf8_is_valid(const char *bytes, size_t length)
{
    struct sequence sequence;

    for (size_t i = 0; i < length; i += sequence.length) {
        sequence = read_sequence(bytes + i, length - i);
        if (sequence.length != sequence.wanted)
            return false;
    }
    return true;
}

void utf8_append(struct text *text, uint32_t character)
{
    char bytes[4];
    size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    static const unsigned char lead_marks[] = {[1] = 0x00, [2] = 0xC0, [3] = 0xE0, [4] = 0xF0};

    assert(character <= 0x10FFFF && (character < 0xD800 || character > 0xDFFF));
    for (size_t i = length - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (character & 0x3F));
        character >>= 6;
    }
    bytes[0] = (char)(lead_marks[length] | character);
    text_append_bytes(text, bytes, length);
}

size_t utf8_boundary(const char *string, size_t limit)
{
    /* A character has at most three bytes before its last byte. */
    for (size_t tail = 1; tail <= 3 && tail <= limit; tail++) {
        struct sequence sequence;

        if (((unsigned char)string[limit - tail] & 0xC0) == 0x80)
            continue;
        sequence = read_sequence(string + limit - tail, tail);
        if (sequence.length == tail && sequence.length < sequence.wanted)
            return limit - tail;
        break;
    }
    return limit;
}

static bool is_in_ranges(uint32_t character, const struct character_range *ranges, size_t count)
{
    size_t from = 0;
    size_t to = count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (character > ranges[middle].last)
            from = middle + 1;
        else if (character < ranges[middle].first)
            to = middle;
        else
            return true;
    }
    return false;
}

#define IS_IN(character, ranges) is_in_ranges((character), (ranges), COUNT(ranges))

unsigned utf8_character_width(uint32_t character)
{
    /* Most characters are below both tables. */
    if (character < zero_columns[0].first)
        return 1;
    if (IS_IN(character, zero_columns))
        return 0;
    return IS_IN(character, two_columns) ? 2 : 1;
}

bool utf8_is_control(uint32_t character)
{
    static const struct character_range controls[] = {
        {0x0000, 0x001F}, {0x007F, 0x009F}, {0x061C, 0x061C},
        {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069},
    };

    return IS_IN(character, controls);
}

void utf8_append_inert(struct text *text, const char *string)
{
    size_t length = strlen(string);
    uint32_t character;

    for (size_t i = 0; i < length;) {
        i += utf8_decode_inert(string + i, length - i, &character);
        utf8_append(text, character);
    }
}

size_t utf8_width(const char *string)
{
    size_t length = strlen(string);
    size_t width = 0;
    uint32_t character;

    for (size_t i = 0; i < length;) {
        i += utf8_decode_inert(string + i, length - i, &character);
        width += utf8_character_width(character);
    }
    return width;
}

void utf8_make_plain(char *string)
{
    size_t length = strlen(string);
    struct sequence sequence;

    for (size_t i = 0; i < length; i += sequence.length) {
        sequence = read_sequence(string + i, length - i);
        if (sequence.length != sequence.wanted || utf8_is_control(sequence.character))
            memset(string + i, '?', sequence.length);
    }
}
