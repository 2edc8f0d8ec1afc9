/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/sysroot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

int sysroot_init(struct sysroot *root, struct berth_error *error)
{
    const char *given = getenv("BERTH_SYSROOT");
    size_t length = given == NULL ? 0 : strlen(given);

    while (length > 0 && given[length - 1] == '/')
        length--;
    root->recorded = given != NULL && *given != '\0';
    /* Resolve it, so that sysroot_resolve() can check whether a link stays within. */
    root->prefix = root->recorded && length > 0 ? realpath(given, NULL) : strdup("");
    if (root->prefix == NULL && root->recorded)
        root->prefix = strndup(given, length); /* it does not exist, so nothing is found below it */
    return root->prefix == NULL ? error_set_memory(error) : 0;
}

void sysroot_finish(struct sysroot *root)
{
    free(root->prefix);
    *root = (struct sysroot){0};
}

/* Makes the path below the prefix. Returns false if it is too long. */
static bool make_path(const struct sysroot *root, char path[PATH_MAX], const char *format,
                      va_list list) __attribute__((format(printf, 3, 0)));
static bool make_path(const struct sysroot *root, char path[PATH_MAX], const char *format,
                      va_list list)
{
    size_t length = strlen(root->prefix);
    int more;

    if (length >= PATH_MAX)
        return false;
    memcpy(path, root->prefix, length + 1);
    more = vsnprintf(path + length, PATH_MAX - length, format, list);
    return more >= 0 && (size_t)more < PATH_MAX - length;
}

/* Makes a path from `format` and the variable arguments. */
#define MAKE_PATH(root, path, format, ret_made)                 \
    do {                                                        \
        va_list arguments;                                      \
                                                                \
        va_start(arguments, format);                            \
        *(ret_made) = make_path(root, path, format, arguments); \
        va_end(arguments);                                      \
    } while (0)

/* Reads at most `size` bytes. Returns their number, or a negative errno. */
static ssize_t read_bytes(int directory, const char *path, char *buffer, size_t size)
{
    int descriptor = openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t length = 0;
    ssize_t got = 1;

    if (descriptor < 0)
        return -errno;
    while (got > 0 && length < size) {
        got = read(descriptor, buffer + length, size - length);
        if (got > 0)
            length += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
        /* A short answer that ends with a newline is complete. This saves a read for thousands of
         * small files. */
        if (got > 0 && length < size && buffer[length - 1] == '\n')
            break;
    }
    if (got < 0)
        got = -errno;
    close(descriptor);
    return got < 0 ? got : (ssize_t)length;
}

int sysroot_read_at(int directory, const char *path, struct sysroot_value *ret_value)
{
    ssize_t length = read_bytes(directory, path, ret_value->text, sizeof(ret_value->text) - 1);

    ret_value->length = length < 0 ? 0 : (size_t)length;
    while (ret_value->length > 0 &&
           strchr(" \n\t\r", ret_value->text[ret_value->length - 1]) != NULL)
        ret_value->length--;
    ret_value->text[ret_value->length] = '\0';
    return length < 0 ? (int)length : 0;
}

static int read_value(const char *path, struct sysroot_value *ret_value)
{
    return sysroot_read_at(AT_FDCWD, path, ret_value);
}

int sysroot_open(const struct sysroot *root, const char *format, ...)
{
    char path[PATH_MAX];
    int descriptor;
    bool made;

    MAKE_PATH(root, path, format, &made);
    if (!made)
        return -ENAMETOOLONG;
    descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return descriptor < 0 ? -errno : descriptor;
}

int sysroot_read(const struct sysroot *root, struct sysroot_value *ret_value, const char *format,
                 ...)
{
    char path[PATH_MAX];
    bool made;

    *ret_value->text = '\0';
    ret_value->length = 0;
    MAKE_PATH(root, path, format, &made);
    return made ? read_value(path, ret_value) : -ENAMETOOLONG;
}

int sysroot_read_text(const struct sysroot *root, size_t max, struct text *out, const char *format,
                      ...)
{
    char path[PATH_MAX];
    ssize_t length;
    char *place;
    bool made;

    MAKE_PATH(root, path, format, &made);
    if (!made)
        return -ENAMETOOLONG;
    place = text_reserve(out, max);
    if (place == NULL)
        return -ENOMEM;
    length = read_bytes(AT_FDCWD, path, place, max);
    text_commit(out, length < 0 ? 0 : (size_t)length);
    return length < 0 ? (int)length : 0;
}

/* Parses a whole number and nothing else; strtoull() alone would accept blanks, signs and 0x.
 * Returns whether it is one. */
static bool parse_number(const struct sysroot_value *value, const char *digits, int base,
                         uint64_t *ret_number)
{
    size_t length = strspn(digits, base == 16 ? "0123456789abcdefABCDEF" : "0123456789");

    if (length == 0 || digits + length != value->text + value->length)
        return false;
    errno = 0;
    *ret_number = strtoull(digits, NULL, base);
    return errno == 0;
}

static bool parse_unsigned(const struct sysroot_value *value, uint64_t *ret_number)
{
    bool is_hexadecimal = strncmp(value->text, "0x", 2) == 0;

    return parse_number(value, value->text + (is_hexadecimal ? 2 : 0), is_hexadecimal ? 16 : 10,
                        ret_number);
}

struct optional_number sysroot_number(const struct sysroot *root, const char *format, ...)
{
    struct optional_number number = {0};
    struct sysroot_value value;
    char path[PATH_MAX];
    bool made;

    MAKE_PATH(root, path, format, &made);
    if (made && read_value(path, &value) == 0)
        number.known = parse_unsigned(&value, &number.value);
    return number;
}

struct optional_number sysroot_hexadecimal(const struct sysroot *root, const char *format, ...)
{
    struct optional_number number = {0};
    struct sysroot_value value;
    char path[PATH_MAX];
    bool made;

    MAKE_PATH(root, path, format, &made);
    if (made && read_value(path, &value) == 0)
        number.known = parse_number(&value, value.text, 16, &number.value);
    return number;
}

bool sysroot_signed(const struct sysroot *root, int64_t *ret_number, const char *format, ...)
{
    struct sysroot_value value;
    char path[PATH_MAX];
    uint64_t number;
    bool is_negative;
    bool made;

    MAKE_PATH(root, path, format, &made);
    if (!made || read_value(path, &value) != 0)
        return false;
    is_negative = value.text[0] == '-';
    if (!(is_negative ? parse_number(&value, value.text + 1, 10, &number)
                      : parse_unsigned(&value, &number)) ||
        number > INT64_MAX)
        return false;
    *ret_number = is_negative ? -(int64_t)number : (int64_t)number;
    return true;
}

static int compare_names(const void *one, const void *other)
{
    return strverscmp(*(char *const *)one, *(char *const *)other);
}

int sysroot_list(const struct sysroot *root, struct string_list *ret_names, const char *format, ...)
{
    size_t first = ret_names->count;
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *directory;
    int number = 0;
    bool made;

    MAKE_PATH(root, path, format, &made);
    if (!made)
        return -ENAMETOOLONG;
    directory = opendir(path);
    if (directory == NULL)
        return -errno;
    while (number == 0 && ret_names->count - first < SYSROOT_NAMES_MAX) {
        errno = 0;
        entry = readdir(directory);
        if (entry == NULL) {
            number = -errno;
            break;
        }
        if (entry->d_name[0] != '.' && string_list_append(ret_names, entry->d_name) < 0)
            number = -ENOMEM;
    }
    closedir(directory);
    if (ret_names->count > first)
        qsort(ret_names->items + first, ret_names->count - first, sizeof(*ret_names->items),
              compare_names);
    return number;
}

char *sysroot_link_name(const struct sysroot *root, const char *format, ...)
{
    char path[PATH_MAX];
    char target[PATH_MAX];
    ssize_t length;
    bool made;

    MAKE_PATH(root, path, format, &made);
    length = made ? readlink(path, target, sizeof(target) - 1) : -1;
    while (length > 0 && target[length - 1] == '/')
        length--;
    if (length <= 0)
        return NULL;
    target[length] = '\0';
    return strdup(strrchr(target, '/') == NULL ? target : strrchr(target, '/') + 1);
}

char *sysroot_resolve(const struct sysroot *root, const char *format, ...)
{
    size_t length = strlen(root->prefix);
    char path[PATH_MAX];
    char resolved[PATH_MAX];
    bool made;

    MAKE_PATH(root, path, format, &made);
    if (!made || realpath(path, resolved) == NULL || strncmp(resolved, root->prefix, length) != 0 ||
        resolved[length] != '/')
        return NULL;
    return strdup(resolved + length);
}

bool sysroot_has(const struct sysroot *root, const char *format, ...)
{
    char path[PATH_MAX];
    struct stat status;
    bool made;

    MAKE_PATH(root, path, format, &made);
    return made && stat(path, &status) == 0;
}
