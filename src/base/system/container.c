/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/container.h"

#include <stdbool.h>
#include <string.h>

#include "base/count.h"
#include "base/text/span.h"
#include "base/text/utf8.h"

/* Runtimes generate ids of 64 digits and show the first 12. */
enum { ID_MIN = 12, ID_LENGTH = 64, NAME_LENGTH_MAX = 255 };

static int digit_value(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

static bool is_container_id(struct span span, size_t shortest)
{
    if (span.length < shortest || span.length > ID_LENGTH)
        return false;
    for (size_t i = 0; i < span.length; i++) {
        if (digit_value(span.bytes[i]) < 0)
            return false;
    }
    return true;
}

/* Finds the id in docker-<id>.scope when systemd manages the groups, or in docker-<id> when the
 * runtime does. conmon's own group has another prefix (libpod-conmon-), so no id is found in it. */
static bool find_container_id(struct span part, struct span *ret_id)
{
    static const char *const beginnings[] = {
        "docker-", "cri-containerd-", "libpod-payload-", "libpod-", "crio-", "nerdctl-",
    };
    const char *colon = memrchr(part.bytes, ':', part.length);

    *ret_id = part;
    /* containerd in a systemd service: kubepods-pod1.slice:cri-containerd:<id>. */
    if (colon != NULL) {
        ret_id->length -= (size_t)(colon + 1 - part.bytes);
        ret_id->bytes = colon + 1;
    }
    if (is_container_id(*ret_id, ID_LENGTH))
        return true;
    span_drop_suffix(&part, ".scope");
    for (size_t i = 0; i < COUNT(beginnings); i++) {
        *ret_id = part;
        if (span_skip_prefix(ret_id, beginnings[i]) && is_container_id(*ret_id, ID_MIN))
            return true;
    }
    return false;
}

/* Finds the name of a machine: lxc.payload.<name>, /lxc/<name>, systemd-nspawn@<name>.service, or
 * machine-<name>.scope, unless that is a virtual machine. */
static bool find_machine_name(struct span part, struct span before, struct span *ret_name)
{
    *ret_name = part;
    if (span_skip_prefix(ret_name, "lxc.payload.") ||
        (before.length == strlen("lxc") && span_skip_prefix(&before, "lxc")))
        return ret_name->length > 0;
    if (span_skip_prefix(ret_name, "systemd-nspawn@"))
        return span_drop_suffix(ret_name, ".service") && ret_name->length > 0;
    return span_skip_prefix(ret_name, "machine-") && !span_skip_prefix(ret_name, "qemu\\x2d") &&
           span_drop_suffix(ret_name, ".scope") && ret_name->length > 0;
}

/* Appends a name, in which systemd escapes some characters, such as \x2d for '-'. */
static void append_machine_name(struct span name, struct text *out)
{
    char plain[NAME_LENGTH_MAX + 1];
    size_t length = 0;

    for (size_t i = 0; i < name.length && length < NAME_LENGTH_MAX; i++) {
        int high = -1, low = -1;

        if (name.length - i >= 4 && name.bytes[i] == '\\' && name.bytes[i + 1] == 'x') {
            high = digit_value(name.bytes[i + 2]);
            low = digit_value(name.bytes[i + 3]);
        }
        if (high >= 0 && low >= 0 && high + low > 0) {
            plain[length++] = (char)(high * 16 + low);
            i += 3;
        } else if (name.bytes[i] != '\0') {
            plain[length++] = name.bytes[i];
        }
    }
    plain[utf8_boundary(plain, length)] = '\0';
    utf8_append_inert(out, plain);
}

/* Removes the last part of a path and returns it. */
static struct span remove_last_part(struct span *path)
{
    const char *slash;
    struct span last;

    while (path->length > 0 && path->bytes[path->length - 1] == '/')
        path->length--;
    slash = path->length == 0 ? NULL : memrchr(path->bytes, '/', path->length);
    last.bytes = slash == NULL ? path->bytes : slash + 1;
    last.length = path->length - (size_t)(last.bytes - path->bytes);
    path->length -= last.length;
    return last;
}

static bool find_in_path(struct span path, struct text *out)
{
    struct span part = remove_last_part(&path);

    while (part.length > 0) {
        struct span before = remove_last_part(&path);
        struct span found;

        if (find_container_id(part, &found)) {
            text_append_bytes(out, found.bytes, found.length);
            return true;
        }
        if (find_machine_name(part, before, &found)) {
            append_machine_name(found, out);
            return true;
        }
        part = before;
    }
    return false;
}

void container_find(const char *bytes, size_t length, struct text *out)
{
    struct span text = {bytes, length};
    struct span line;

    while (span_read_line(&text, &line)) {
        /* hierarchy:controllers:path, or 0::path in version 2. */
        const char *colon = line.length == 0 ? NULL : memchr(line.bytes, ':', line.length);

        if (colon != NULL)
            colon = memchr(colon + 1, ':', (size_t)(line.bytes + line.length - colon - 1));
        if (colon == NULL)
            continue;
        line.length -= (size_t)(colon + 1 - line.bytes);
        line.bytes = colon + 1;
        if (find_in_path(line, out))
            return;
    }
}

int container_shown_length(const char *container)
{
    struct span span = {container, strlen(container)};

    return is_container_id(span, ID_MIN) ? ID_MIN : (int)span.length;
}
