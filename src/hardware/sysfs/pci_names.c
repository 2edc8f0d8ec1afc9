/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/pci_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/text/utf8.h"

/* The real file has 1.4 MB and grows slowly. */
#define IDS_MAX         (16 * 1024 * 1024)
#define NAME_LENGTH_MAX 120

struct slice {
    const char *start;
    size_t length;
};

struct pci_name_vendor {
    uint32_t id;
    size_t start; /* of its line in the text, after the id */
    size_t end;   /* of its devices */
};

/* The vendors' common names. */
static const struct {
    uint32_t id;
    const char *name;
} short_names[] = {
    {0x1002, "AMD"},    {0x1022, "AMD"},          {0x10de, "NVIDIA"},     {0x8086, "Intel"},
    {0x106b, "Apple"},  {0x1af4, "Red Hat"},      {0x1b36, "Red Hat"},    {0x1234, "QEMU"},
    {0x15ad, "VMware"}, {0x1414, "Microsoft"},    {0x80ee, "VirtualBox"}, {0x1a03, "ASPEED"},
    {0x102b, "Matrox"}, {0x1013, "Cirrus Logic"}, {0x5333, "S3"},         {0x1106, "VIA"},
    {0x1039, "SiS"},    {0x1d17, "Zhaoxin"},      {0x0014, "Loongson"},   {0x1ed5, "Moore Threads"},
    {0x13b5, "Arm"},    {0x1010, "Imagination"},
};

static const char *short_name(uint32_t vendor)
{
    for (size_t i = 0; i < COUNT(short_names); i++)
        if (short_names[i].id == vendor)
            return short_names[i].name;
    return NULL;
}

/* Returns the line that begins here, without its end. */
static struct slice line_at(const struct text *content, size_t start)
{
    const char *line = content->bytes + start;
    const char *end = memchr(line, '\n', content->length - start);

    return (struct slice){
        .start = line,
        .length = end == NULL ? content->length - start : (size_t)(end - line),
    };
}

static int hex_digit(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    return -1;
}

/* Parses a line of a vendor or a device: an id of four lower-case digits, two blanks, and the name.
 */
static bool parse_id_line(struct slice line, uint32_t *ret_id, struct slice *ret_name)
{
    uint32_t id = 0;

    if (line.length < 6 || line.start[4] != ' ' || line.start[5] != ' ')
        return false;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(line.start[i]);

        if (digit < 0)
            return false;
        id = id << 4 | (uint32_t)digit;
    }
    *ret_id = id;
    *ret_name = (struct slice){.start = line.start + 6, .length = line.length - 6};
    return true;
}

/* Lines of devices begin with a tab, comments with #. Any other line ends a vendor's devices. */
int pci_name_table_init(struct pci_name_table *ids, struct text *content)
{
    struct pci_name_vendor *vendor = NULL;

    *ids = (struct pci_name_table){.content = *content};
    *content = (struct text){0};
    for (size_t at = 0; at < ids->content.length;) {
        struct slice line = line_at(&ids->content, at);
        struct slice name;
        uint32_t id;

        if (line.length > 0 && line.start[0] != '\t' && line.start[0] != '#') {
            if (vendor != NULL)
                vendor->end = at;
            vendor = NULL;
            if (parse_id_line(line, &id, &name)) {
                vendor = vector_append(&ids->vendors);
                if (vendor == NULL)
                    return BERTH_ERROR_MEMORY;
                *vendor = (struct pci_name_vendor){
                    .id = id,
                    .start = (size_t)(name.start - ids->content.bytes),
                    .end = ids->content.length,
                };
            }
        }
        at += line.length + 1;
    }
    return 0;
}

void pci_name_table_finish(struct pci_name_table *ids)
{
    text_finish(&ids->content);
    vector_finish(&ids->vendors);
}

static const struct pci_name_vendor *find_vendor(const struct pci_name_table *ids, uint32_t id)
{
    const struct pci_name_vendor *vendor;

    vector_for_each (vendor, &ids->vendors)
        if (vendor->id == id)
            return vendor;
    return NULL;
}

/* Returns the name of a device of this vendor; empty if there is none. */
static struct slice find_device(const struct pci_name_table *ids,
                                const struct pci_name_vendor *vendor, uint32_t wanted)
{
    struct slice name;
    uint32_t id;

    for (size_t at = vendor->start; at < vendor->end;) {
        struct slice line = line_at(&ids->content, at);

        at += line.length + 1;
        if (line.length > 0 && line.start[0] == '\t' &&
            parse_id_line((struct slice){line.start + 1, line.length - 1}, &id, &name) &&
            id == wanted)
            return name;
    }
    return (struct slice){0};
}

static struct slice trim_name(struct slice name)
{
    while (name.length > 0 && strchr(" \t\r", name.start[0]) != NULL) {
        name.start++;
        name.length--;
    }
    while (name.length > 0 && strchr(" \t\r", name.start[name.length - 1]) != NULL)
        name.length--;
    return name;
}

/* Returns the text in the last brackets, which is the market name; otherwise the name itself. */
static struct slice find_bracketed(struct slice name)
{
    const char *close = memrchr(name.start, ']', name.length);
    const char *open =
        close == NULL ? NULL : memrchr(name.start, '[', (size_t)(close - name.start));
    struct slice inner = {0};

    if (open != NULL)
        inner = trim_name((struct slice){.start = open + 1, .length = (size_t)(close - open - 1)});
    return inner.length > 0 ? inner : trim_name(name);
}

/* Appends at most NAME_LENGTH_MAX bytes of the name, with control characters replaced. */
static void append_name(struct text *out, struct slice name)
{
    char bytes[NAME_LENGTH_MAX + 1];
    size_t length = name.length < NAME_LENGTH_MAX ? name.length : NAME_LENGTH_MAX;

    memcpy(bytes, name.start, length);
    bytes[utf8_boundary(bytes, length)] = '\0';
    utf8_append_inert(out, bytes);
}

char *pci_name_table_find(const struct pci_name_table *ids, uint32_t vendor, uint32_t device)
{
    const struct pci_name_vendor *known = find_vendor(ids, vendor);
    const char *maker = short_name(vendor);
    struct slice found = {0};
    struct text own = {0};
    struct text name = {0};

    if (known != NULL)
        found = find_device(ids, known, device);
    if (found.length > 0)
        append_name(&own, find_bracketed(found));
    if (maker != NULL)
        text_append(&name, maker);
    else if (known != NULL)
        append_name(&name, find_bracketed(line_at(&ids->content, known->start)));
    if (own.length == 0 && name.length == 0)
        text_append_format(&name, "Device %04x:%04x", vendor, device);
    else if (own.length == 0)
        text_append_format(&name, " Device %04x", device);
    else if (name.length > 0 && strcasestr(text_string(&own), text_string(&name)) != NULL)
        text_clear(&name);
    if (own.length > 0)
        text_append_format(&name, "%s%s", name.length > 0 ? " " : "", text_string(&own));
    if (text_failed(&own))
        name.failed = true;
    text_finish(&own);
    return text_detach(&name);
}

/* A name from an earlier lookup. Machines have many devices of few models. */
struct cached_name {
    uint32_t vendor;
    uint32_t device;
    char *name;
};

#define CACHED_NAMES_MAX 64

/* The file that was read, the root that it belongs to, and its names. */
static struct pci_name_table loaded;
static char *loaded_prefix;
static struct {
    VECTOR_OF(struct cached_name);
} cached_names;

void pci_names_finish(void)
{
    struct cached_name *known;

    vector_for_each (known, &cached_names)
        free(known->name);
    vector_finish(&cached_names);
    pci_name_table_finish(&loaded);
    free(loaded_prefix);
    loaded_prefix = NULL;
}

/* Reads the file from the places where distributions install it. */
static bool read_ids(const struct sysroot *root, struct text *content)
{
    static const char *const paths[] = {
        "/usr/share/misc/pci.ids",
        "/usr/share/hwdata/pci.ids",
        "/usr/share/pci.ids",
    };

    for (size_t i = 0; i < COUNT(paths); i++)
        if (sysroot_read_text(root, IDS_MAX, content, "%s", paths[i]) == 0)
            return true;
    return false;
}

/* Reads the file once: that of the recorded machine if it has one, otherwise this machine's. */
static bool load_ids(const struct sysroot *root)
{
    static char nothing[] = "";
    static const struct sysroot own = {.prefix = nothing};
    struct text content = {0};

    if (loaded_prefix != NULL && strcmp(loaded_prefix, root->prefix) == 0)
        return true;
    pci_names_finish();
    if (!read_ids(root, &content) && root->prefix[0] != '\0')
        read_ids(&own, &content);
    if (text_failed(&content) || pci_name_table_init(&loaded, &content) < 0) {
        text_finish(&content);
        pci_name_table_finish(&loaded);
        return false;
    }
    loaded_prefix = strdup(root->prefix);
    return loaded_prefix != NULL;
}

char *pci_name_by_ids(const struct sysroot *root, uint32_t vendor, uint32_t device)
{
    struct cached_name *known;
    char *name;

    if (!load_ids(root))
        return NULL;
    vector_for_each (known, &cached_names)
        if (known->vendor == vendor && known->device == device)
            return strdup(known->name);
    name = pci_name_table_find(&loaded, vendor, device);
    if (name == NULL || cached_names.count >= CACHED_NAMES_MAX)
        return name;
    known = vector_append(&cached_names);
    if (known != NULL)
        *known = (struct cached_name){.vendor = vendor, .device = device, .name = name};
    return known == NULL ? name : strdup(name);
}

/* Parses an id as the kernel writes it: four upper-case digits. */
static bool parse_id(const char *digits, uint32_t *ret_id)
{
    uint32_t id = 0;

    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit((char)tolower((unsigned char)digits[i]));

        if (digit < 0)
            return false;
        id = id << 4 | (uint32_t)digit;
    }
    *ret_id = id;
    return true;
}

/* Reads the ids from a uevent, PCI_ID=8086:5912, for a directory without the other files. */
static bool read_uevent(const struct sysroot *root, const char *path, uint32_t *ret_vendor,
                        uint32_t *ret_device)
{
    static const char key[] = "PCI_ID=";
    struct sysroot_value uevent;
    char *rest = uevent.text;
    char *line;

    if (sysroot_read(root, &uevent, "%s/uevent", path) != 0)
        return false;
    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *ids = line + strlen(key);

        if (strncmp(line, key, strlen(key)) == 0)
            return strlen(ids) == strlen("8086:5912") && ids[4] == ':' &&
                   parse_id(ids, ret_vendor) && parse_id(ids + 5, ret_device);
    }
    return false;
}

char *pci_name(const struct sysroot *root, const char *path)
{
    struct optional_number vendor = sysroot_number(root, "%s/vendor", path);
    struct optional_number device = sysroot_number(root, "%s/device", path);
    uint32_t ids[2];

    if (!vendor.known && !device.known && read_uevent(root, path, &ids[0], &ids[1]))
        return pci_name_by_ids(root, ids[0], ids[1]);
    if (!vendor.known || !device.known || vendor.value > 0xffff || device.value > 0xffff)
        return NULL;
    return pci_name_by_ids(root, (uint32_t)vendor.value, (uint32_t)device.value);
}
