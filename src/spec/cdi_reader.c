/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/cdi_reader.h"

#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"
#include "spec/document.h"

/* The state of reading one file. */
struct cdi_reading {
    const struct document *document;
    struct berth_error *error;
    const char *kind;
    struct string_list shared; /* device files that all entries have */
    struct cdi_registry entries;
    size_t bytes; /* memory for the entries' paths so far */
};

/* Sets the error and evaluates to `code`, so that static analyzers see which value is returned. */
#define fail(reading, node, code, ...) \
    (document_error((reading)->document, node, (reading)->error, code, __VA_ARGS__), (code))

/* Finds the value of a key of a mapping; NULL: the key is missing, or its value is null. */
static int find_member(const struct cdi_reading *reading, const struct document_node *mapping,
                       const char *key, const struct document_node **ret_value)
{
    const struct document_node *value = NULL;

    for (size_t i = 0; i + 1 < mapping->count; i += 2) {
        const struct document_node *name = mapping->items[i];

        if (name->kind != NODE_SCALAR || name->length != strlen(key) ||
            memcmp(name->text, key, name->length) != 0)
            continue;
        if (value != NULL)
            return fail(reading, name, BERTH_ERROR_SYNTAX, "expected '%s' once, got it twice", key);
        value = mapping->items[i + 1];
    }
    *ret_value = value == NULL || document_node_is_null(value) ? NULL : value;
    return 0;
}

/* Finds the value as find_member does, and fails if it is not a node of this kind. */
static int find_kind(const struct cdi_reading *reading, const struct document_node *mapping,
                     const char *key, enum node_kind kind, const struct document_node **ret_value)
{
    static const char *const wanted[] = {
        [NODE_SCALAR] = "a text", [NODE_LIST] = "a list", [NODE_MAPPING] = "a mapping"};
    const struct document_node *value = NULL;
    int code = find_member(reading, mapping, key, &value);

    if (code < 0)
        return code;
    if (value != NULL && value->kind != kind)
        return fail(reading, value, BERTH_ERROR_SYNTAX, "%s: expected %s, got %s", key,
                    wanted[kind], document_node_describe(value).text);
    *ret_value = value;
    return 0;
}

/* Finds the value, which must be a text of 1 to CDI_TEXT_MAX bytes without zero bytes. */
static int need_text(const struct cdi_reading *reading, const struct document_node *mapping,
                     const char *key, const struct document_node **ret_value)
{
    const struct document_node *value = NULL;
    int code = find_kind(reading, mapping, key, NODE_SCALAR, &value);

    if (code < 0)
        return code;
    if (value == NULL || value->length == 0)
        return fail(reading, value == NULL ? mapping : value, BERTH_ERROR_SYNTAX,
                    "%s: expected a text, got nothing", key);
    if (value->length > CDI_TEXT_MAX)
        return fail(reading, value, BERTH_ERROR_LIMIT,
                    "%s: expected a text of at most %d bytes, got %zu", key, CDI_TEXT_MAX,
                    value->length);
    if (memchr(value->text, '\0', value->length) != NULL)
        return fail(reading, value, BERTH_ERROR_SYNTAX,
                    "%s: expected a text without zero bytes, got one", key);
    *ret_value = value;
    return 0;
}

/* Returns whether the text has only letters, digits and the characters in `between`, and begins and
 * ends with a letter or digit. */
static bool is_name(const char *text, size_t length, const char *between)
{
    if (length == 0 || !isalnum((unsigned char)text[0]) ||
        !isalnum((unsigned char)text[length - 1]))
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)text[i]) && strchr(between, text[i]) == NULL)
            return false;
    }
    return true;
}

static bool is_kind(const char *kind)
{
    size_t vendor = strcspn(kind, "/");
    const char *class = kind + vendor + (kind[vendor] == '/');

    return is_name(kind, vendor, "_-.") && isalpha((unsigned char)kind[0]) &&
           is_name(class, strlen(class), "_-") && isalpha((unsigned char)class[0]);
}

/* Returns the path of a device file on the host: the part from the last /dev/ on. A driver that is
 * installed in a directory of its own has a copy of /dev there. */
static const char *host_path(const struct document_node *path)
{
    const char *below = path->text;

    for (const char *next = below; (next = strstr(next, "/dev/")) != NULL; next++)
        below = next;
    return below;
}

/* Appends the path. Refuses more than CDI_BYTES_MAX: shared paths are copied to each entry, so even
 * a short file can need much memory. */
static int keep_path(struct cdi_reading *reading, const char *path, struct string_list *nodes)
{
    reading->bytes += strlen(path) + sizeof(char *) + 1;
    if (reading->bytes > CDI_BYTES_MAX)
        return error_set(reading->error, BERTH_ERROR_LIMIT,
                         "%s: expected at most %u bytes of device files, got more",
                         reading->document->file, CDI_BYTES_MAX);
    return string_list_append(nodes, path) < 0 ? error_set_memory(reading->error) : 0;
}

static int add_node(struct cdi_reading *reading, const struct document_node *node,
                    struct string_list *nodes)
{
    const struct document_node *path = NULL;
    const struct document_node *host = NULL;
    int code;

    if (node->kind != NODE_MAPPING)
        return fail(reading, node, BERTH_ERROR_SYNTAX,
                    "deviceNodes: expected a mapping for each, got %s",
                    document_node_describe(node).text);
    code = need_text(reading, node, "path", &path);
    if (code == 0)
        code = find_member(reading, node, "hostPath", &host);
    if (code == 0 && host != NULL)
        code = need_text(reading, node, "hostPath", &path);
    if (code < 0)
        return code;
    if (path->text[0] != '/')
        return fail(reading, path, BERTH_ERROR_SYNTAX, "expected an absolute path, got %s",
                    document_node_describe(path).text);
    return keep_path(reading, host_path(path), nodes);
}

/* Adds the device files in the containerEdits of a mapping. */
static int add_nodes(struct cdi_reading *reading, const struct document_node *mapping,
                     struct string_list *nodes)
{
    const struct document_node *edits = NULL;
    const struct document_node *list = NULL;
    int code = find_kind(reading, mapping, "containerEdits", NODE_MAPPING, &edits);

    if (code == 0 && edits != NULL)
        code = find_kind(reading, edits, "deviceNodes", NODE_LIST, &list);
    if (code < 0 || list == NULL)
        return code;
    for (size_t i = 0; i < list->count && code == 0; i++)
        code = add_node(reading, list->items[i], nodes);
    return code;
}

/* Refuses an entry without containerEdits. */
static int check_edits(const struct cdi_reading *reading, const struct document_node *device)
{
    const struct document_node *edits = NULL;
    int code = find_kind(reading, device, "containerEdits", NODE_MAPPING, &edits);

    if (code == 0 && (edits == NULL || edits->count == 0))
        code = fail(reading, edits == NULL ? device : edits, BERTH_ERROR_SYNTAX,
                    "containerEdits: expected a mapping, got nothing");
    return code;
}

/* Sets the qualified name of an entry. Fails if another entry has it. */
static int name_entry(const struct cdi_reading *reading, const struct document_node *device,
                      struct cdi_entry *entry)
{
    const struct cdi_entry *other;
    const struct document_node *name = NULL;
    struct text qualified = {0};
    int code = need_text(reading, device, "name", &name);

    if (code < 0)
        return code;
    if (!is_name(name->text, name->length, "_-.:"))
        return fail(reading, name, BERTH_ERROR_SYNTAX, "name: expected a CDI name, got %s",
                    document_node_describe(name).text);
    text_append_format(&qualified, "%s=%s", reading->kind, name->text);
    entry->name = text_detach(&qualified);
    if (entry->name == NULL)
        return error_set_memory(reading->error);
    vector_for_each (other, &reading->entries) {
        if (other != entry && strcmp(other->name, entry->name) == 0)
            return fail(reading, name, BERTH_ERROR_SYNTAX, "name: expected %s once, got it twice",
                        document_node_describe(name).text);
    }
    return 0;
}

static int add_entry(struct cdi_reading *reading, const struct document_node *device)
{
    struct cdi_entry entry = {0};
    struct cdi_entry *place;
    char *const *shared;
    int code;

    if (device->kind != NODE_MAPPING)
        return fail(reading, device, BERTH_ERROR_SYNTAX,
                    "devices: expected a mapping for each, got %s",
                    document_node_describe(device).text);
    code = name_entry(reading, device, &entry);
    if (code == 0)
        code = check_edits(reading, device);
    if (code == 0)
        code = add_nodes(reading, device, &entry.nodes);
    vector_for_each (shared, &reading->shared) {
        if (code == 0)
            code = keep_path(reading, *shared, &entry.nodes);
    }
    place = code == 0 ? vector_append(&reading->entries) : NULL;
    if (code == 0 && place == NULL)
        code = error_set_memory(reading->error);
    if (place != NULL)
        *place = entry;
    else
        cdi_entry_finish(&entry);
    return code;
}

static int add_entries(struct cdi_reading *reading, const struct document_node *root)
{
    const struct document_node *devices = NULL;
    int code = find_kind(reading, root, "devices", NODE_LIST, &devices);

    if (code < 0)
        return code;
    if (devices == NULL || devices->count == 0)
        return fail(reading, root, BERTH_ERROR_SYNTAX, "devices: expected a list, got nothing");
    if (devices->count > CDI_ENTRIES_MAX)
        return fail(reading, devices, BERTH_ERROR_LIMIT, "devices: expected at most %d, got %zu",
                    CDI_ENTRIES_MAX, devices->count);
    for (size_t i = 0; i < devices->count && code == 0; i++)
        code = add_entry(reading, devices->items[i]);
    return code;
}

static int read_root(struct cdi_reading *reading)
{
    const struct document_node *root = reading->document->root;
    const struct document_node *value = NULL;
    int code;

    if (root == NULL || root->kind != NODE_MAPPING)
        return error_set(reading->error, BERTH_ERROR_SYNTAX,
                         "%s:1:1: expected a CDI file with 'cdiVersion', 'kind' and 'devices', got "
                         "%s",
                         reading->document->file,
                         root == NULL ? "nothing" : document_node_describe(root).text);
    code = need_text(reading, root, "cdiVersion", &value);
    if (code == 0)
        code = need_text(reading, root, "kind", &value);
    if (code < 0)
        return code;
    if (!is_kind(value->text))
        return fail(reading, value, BERTH_ERROR_SYNTAX,
                    "kind: expected one such as nvidia.com/gpu, got %s",
                    document_node_describe(value).text);
    reading->kind = value->text;
    code = add_nodes(reading, root, &reading->shared);
    return code < 0 ? code : add_entries(reading, root);
}

int cdi_reader_parse(const char *file, const char *text, size_t length,
                     struct cdi_registry *ret_entries, struct berth_error *error)
{
    struct document document;
    struct cdi_reading reading = {.document = &document, .error = error};
    int code = document_parse(&document, file, text, length, error);

    if (code < 0)
        return code;
    code = read_root(&reading);
    if (code == 0)
        *ret_entries = reading.entries;
    else
        cdi_registry_finish(&reading.entries);
    string_list_finish(&reading.shared);
    document_finish(&document);
    return code;
}
