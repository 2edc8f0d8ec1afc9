/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/cdi_document.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/error.h"
#include "base/text/json.h"
#include "model/cdi.h"

#define PERMISSION_BITS 07777

/* A device file, which several devices may share. It is examined once. */
struct cdi_node {
    const char *path;   /* borrowed from the device */
    struct stat status; /* only if is_good */
    bool is_good;
    size_t entry; /* the number of the last entry that contains it */
};

struct cdi_writer {
    const char *root;
    VECTOR_OF(struct cdi_node); /* in the order of the devices, each once */
    struct string_list *notes;
    struct berth_error *error;
    struct json json;
    size_t entries; /* entries begun so far */
};

/* Appends the message to the notes. */
static int add_note(struct cdi_writer *writing, const struct berth_error *note)
{
    return string_list_append(writing->notes, note->message) < 0 ? error_set_memory(writing->error)
                                                                 : 0;
}

static const char *describe_type(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "a regular file";
    case S_IFDIR:
        return "a directory";
    case S_IFLNK:
        return "a symbolic link";
    case S_IFBLK:
        return "a block device";
    default:
        return "something else";
    }
}

/* Examines a file, and appends a note if it is left out. */
static int stat_node(struct cdi_writer *writing, struct cdi_node *node)
{
    struct berth_error note = BERTH_ERROR_INIT;
    struct text place = {0};
    const char *path;
    int code = 0;

    text_append(&place, writing->root);
    text_append(&place, node->path);
    path = text_string(&place);
    if (text_failed(&place))
        code = error_set_memory(writing->error);
    else if (node->path[0] != '/')
        error_set(&note, BERTH_ERROR_INVALID, "%s: expected an absolute path; left out",
                  node->path);
    else if (lstat(path, &node->status) < 0)
        error_set(&note, BERTH_ERROR_IO, "%s: %s; left out", path, strerror(errno));
    else if (!S_ISCHR(node->status.st_mode))
        error_set(&note, BERTH_ERROR_INVALID, "%s: expected a character device, got %s; left out",
                  path, describe_type(node->status.st_mode));
    else
        node->is_good = true;
    text_finish(&place);
    return code < 0 || node->is_good ? code : add_note(writing, &note);
}

static struct cdi_node *find_node(const struct cdi_writer *writing, const char *path)
{
    struct cdi_node *node;

    vector_for_each (node, writing) {
        if (strcmp(node->path, path) == 0)
            return node;
    }
    return NULL;
}

static bool is_leasable(const struct device *device)
{
    return !device->partitioned;
}

static bool has_nodes(const struct cdi_writer *writing, const struct device *device)
{
    char *const *path;

    vector_for_each (path, &device->nodes) {
        if (find_node(writing, *path)->is_good)
            return true;
    }
    return false;
}

/* Examines all files of a device. */
static int stat_device_nodes(struct cdi_writer *writing, const struct device *device)
{
    struct berth_error note = BERTH_ERROR_INIT;
    char *const *path;
    int code = 0;

    vector_for_each (path, &device->nodes) {
        struct cdi_node *node;

        if (find_node(writing, *path) != NULL)
            continue;
        node = vector_append(writing);
        if (node == NULL)
            return error_set_memory(writing->error);
        node->path = *path;
        code = stat_node(writing, node);
        if (code < 0)
            return code;
    }
    if (has_nodes(writing, device))
        return 0;
    error_set(&note, BERTH_ERROR_NO_DEVICE, "%s: has no device file; left out",
              device_id_format(device->id).text);
    return add_note(writing, &note);
}

static void write_number(struct json *json, const char *key, uint64_t number)
{
    json_number_member(json, key, true, number);
}

/* Writes the file, unless it is left out or already in the entry. */
static void write_node(struct cdi_writer *writing, struct cdi_node *node)
{
    struct json *json = &writing->json;
    struct text host = {0};

    if (!node->is_good || node->entry == writing->entries)
        return;
    node->entry = writing->entries;
    json_object_begin(json);
    json_string_member(json, "path", node->path);
    if (*writing->root != '\0') {
        text_append(&host, writing->root);
        text_append(&host, node->path);
        json_string_member(json, "hostPath", text_string(&host));
        json->text->failed = json->text->failed || text_failed(&host);
        text_finish(&host);
    }
    json_string_member(json, "type", "c");
    write_number(json, "major", major(node->status.st_rdev));
    write_number(json, "minor", minor(node->status.st_rdev));
    write_number(json, "fileMode", node->status.st_mode & PERMISSION_BITS);
    write_number(json, "uid", node->status.st_uid);
    write_number(json, "gid", node->status.st_gid);
    json_string_member(json, "permissions", "rw");
    json_object_end(json);
}

static void begin_entry(struct cdi_writer *writing, const char *name)
{
    struct json *json = &writing->json;

    writing->entries++;
    json_object_begin(json);
    json_string_member(json, "name", name);
    json_key(json, "containerEdits");
    json_object_begin(json);
    json_key(json, "deviceNodes");
    json_array_begin(json);
}

static void end_entry(struct json *json)
{
    json_array_end(json);
    json_object_end(json);
    json_object_end(json);
}

static void write_entry(struct cdi_writer *writing, const struct device *device)
{
    char *const *path;

    begin_entry(writing, device_id_format(device->id).text);
    vector_for_each (path, &device->nodes)
        write_node(writing, find_node(writing, *path));
    end_entry(&writing->json);
}

static void write_all_entry(struct cdi_writer *writing)
{
    struct cdi_node *node;

    begin_entry(writing, CDI_ALL);
    vector_for_each (node, writing)
        write_node(writing, node);
    end_entry(&writing->json);
}

/* Overrides NVIDIA_VISIBLE_DEVICES, which images for CUDA set: otherwise nvidia's runtime hook
 * would add all GPUs to the container. */
static void write_common_edits(struct json *json)
{
    json_key(json, "containerEdits");
    json_object_begin(json);
    json_key(json, "env");
    json_array_begin(json);
    json_string(json, "NVIDIA_VISIBLE_DEVICES=void");
    json_array_end(json);
    json_object_end(json);
}

static void write_document(struct cdi_writer *writing, const struct device_list *devices,
                           struct text *out)
{
    struct json *json = &writing->json;
    const struct device *device;

    json_start(json, out, JSON_INDENTED);
    json_object_begin(json);
    json_string_member(json, "cdiVersion", CDI_VERSION);
    json_string_member(json, "kind", CDI_KIND);
    json_key(json, "devices");
    json_array_begin(json);
    vector_for_each (device, devices) {
        if (is_leasable(device) && has_nodes(writing, device))
            write_entry(writing, device);
    }
    write_all_entry(writing);
    json_array_end(json);
    write_common_edits(json);
    json_object_end(json);
    json_finish(json);
}

/* Fails if no device file is left to write. */
static int check_any_node(const struct cdi_writer *writing, size_t leasable)
{
    const struct cdi_node *node;

    vector_for_each (node, writing) {
        if (node->is_good)
            return 0;
    }
    return error_set(writing->error, BERTH_ERROR_NO_DEVICE, "cannot write a CDI file: %s",
                     leasable == 0 ? "there is no device" : "no device has a device file");
}

int cdi_document_write(const struct device_list *devices, const char *root, struct text *out,
                       struct string_list *notes, struct berth_error *error)
{
    struct cdi_writer writing = {.root = root, .notes = notes, .error = error};
    const struct device *device;
    size_t leasable = 0;
    int code = 0;

    vector_for_each (device, devices) {
        if (code < 0 || !is_leasable(device))
            continue;
        leasable++;
        code = stat_device_nodes(&writing, device);
    }
    if (code == 0)
        code = check_any_node(&writing, leasable);
    if (code == 0)
        write_document(&writing, devices, out);
    if (code == 0 && text_failed(out))
        code = error_set_memory(error);
    vector_finish(&writing);
    return code;
}
