/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as a file of sysfs. Only numbers are accepted as numbers.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hardware/sysfs/sysroot.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Requires that the digits, without leading zeros, are how the number is written. */
static void require_written(const char *digits, bool hexadecimal, uint64_t number)
{
    char again[32];

    digits += strspn(digits, "0");
    if (hexadecimal)
        snprintf(again, sizeof(again), "%" PRIx64, number);
    else
        snprintf(again, sizeof(again), "%" PRIu64, number);
    require(number == 0 ? *digits == '\0' : strcasecmp(digits, again) == 0);
}

static void try_numbers(const struct sysroot *root, const char *path,
                        const struct sysroot_value *value)
{
    struct optional_number number = sysroot_number(root, "%s", path);
    struct optional_number bare = sysroot_hexadecimal(root, "%s", path);
    const char *text = value->text;
    int64_t with_sign = 0;

    require(strlen(text) == value->length || (!number.known && !bare.known));
    if (number.known && strncmp(text, "0x", 2) == 0)
        require_written(text + 2, true, number.value);
    else if (number.known)
        require_written(text, false, number.value);
    if (bare.known)
        require_written(text, true, bare.value);
    if (!sysroot_signed(root, &with_sign, "%s", path))
        require(with_sign == 0 && (!number.known || number.value > INT64_MAX));
    else if (text[0] == '-')
        require_written(text + 1, false, (uint64_t)-with_sign);
    else
        require(number.known && (uint64_t)with_sign == number.value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char nothing[] = "";
    struct sysroot root = {.prefix = nothing};
    struct sysroot_value value;
    char path[64];
    int file = memfd_create("sysfs", MFD_CLOEXEC);

    require(file >= 0);
    require(write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    require(sysroot_read(&root, &value, "%s", path) == 0);
    require(value.length < SYSROOT_VALUE_SIZE && value.length <= size);
    require(value.text[value.length] == '\0' && memcmp(value.text, data, value.length) == 0);
    try_numbers(&root, path, &value);
    close(file);
    return 0;
}
