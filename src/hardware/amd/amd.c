/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists AMD's devices. AMD's runtime numbers the devices in KFD's order, so all nodes must be read
 * before one device can be numbered: `gpu_id` separates GPUs from CPUs, and `properties` shows
 * which nodes share a GPU or lack their device file here. KFD answers both from memory, without
 * amdgpu. A node that hangs nevertheless, or has invalid files, still counts; its device is sick
 * when it is read.
 */
#include "hardware/amd/amd.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "hardware/amd/kfd.h"
#include "hardware/drm/drm.h"
#include "hardware/sysfs/locality.h"

/* The maximum number of devices that one problem names. */
#define NAMED_MAX 8

struct amd_key_text amd_key_format(const struct amd_key *key)
{
    struct amd_key_text text;
    char node[24] = "-";
    char gpu_id[24] = "-";

    if (key->has_node)
        snprintf(node, sizeof(node), "%" PRIu32, key->node);
    if (key->gpu_id.known)
        snprintf(gpu_id, sizeof(gpu_id), "%" PRIu64, key->gpu_id.value);
    snprintf(text.text, sizeof(text.text), "%s %s %s %s", node, gpu_id,
             key->pci.known ? pci_format(key->pci).text : "-",
             key->parent[0] != '\0' ? key->parent : "-");
    return text;
}

/* Reads one word of a key; "-" becomes NULL. Returns false if there is none. */
static bool next_word(char **rest, const char **ret_word)
{
    *ret_word = strsep(rest, " ");
    if (*ret_word == NULL)
        return false;
    if (strcmp(*ret_word, "-") == 0)
        *ret_word = NULL;
    return true;
}

int amd_key_parse(const char *string, struct amd_key *ret_key, struct berth_error *error)
{
    struct amd_key key = {0};
    struct amd_key_text copy;
    char *rest = copy.text;
    const char *node, *gpu_id, *pci, *parent;
    uint64_t number = 0;
    bool is_right = string != NULL && strlen(string) < sizeof(copy.text);

    strcpy(copy.text, is_right ? string : "");
    is_right = next_word(&rest, &node) && next_word(&rest, &gpu_id) && next_word(&rest, &pci) &&
               next_word(&rest, &parent) && rest == NULL &&
               (node == NULL || quantity_parse_number(node, 0, UINT32_MAX, &number, NULL) == 0) &&
               (pci == NULL || pci_parse(pci, &key.pci, NULL) == 0) &&
               (parent == NULL || strlen(parent) < sizeof(key.parent));
    key.has_node = is_right && node != NULL;
    key.node = (uint32_t)number;
    if (is_right && gpu_id != NULL) {
        is_right = quantity_parse_number(gpu_id, 0, UINT64_MAX, &key.gpu_id.value, NULL) == 0;
        key.gpu_id.known = is_right;
    }
    if (!is_right)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected the key of an AMD device, got another");
    if (parent != NULL)
        strcpy(key.parent, parent);
    *ret_key = key;
    return 0;
}

/* A KFD node that is a GPU or a partition of one. */
struct gpu_part {
    const struct kfd_node *node;
    struct pci_address pci;
    uint32_t partition;
};

/* Sorted numbers, for bsearch(). */
struct numbers {
    VECTOR_OF(uint64_t);
};

struct amd_listing {
    const struct sysroot *root;
    struct findings *findings;
    struct kfd_node_list nodes;
    struct {
        VECTOR_OF(struct gpu_part);
    } parts;
    struct numbers unique_ids;
    struct numbers partitioned; /* addresses of GPUs with partitions */
    uint32_t next_index;
    struct text unreachable;
    size_t unreachable_count;
};

static void listing_finish(struct amd_listing *listing)
{
    vector_finish(&listing->nodes);
    vector_finish(&listing->parts);
    vector_finish(&listing->unique_ids);
    vector_finish(&listing->partitioned);
    text_finish(&listing->unreachable);
}

static int compare_numbers(const void *one, const void *other)
{
    uint64_t mine = *(const uint64_t *)one;
    uint64_t theirs = *(const uint64_t *)other;

    return (mine > theirs) - (mine < theirs);
}

static void sort_numbers(struct numbers *numbers)
{
    if (numbers->count > 1)
        qsort(numbers->items, numbers->count, sizeof(*numbers->items), compare_numbers);
}

/* Returns whether the number occurs; with `twice`, whether it occurs at least twice. */
static bool has_number(const struct numbers *numbers, uint64_t number, bool twice)
{
    const uint64_t *found = numbers->count == 0 ? NULL
                                                : bsearch(&number, numbers->items, numbers->count,
                                                          sizeof(*numbers->items), compare_numbers);

    if (found == NULL || !twice)
        return found != NULL;
    return (found > numbers->items && found[-1] == number) ||
           (found + 1 < numbers->items + numbers->count && found[1] == number);
}

static int add_number(struct numbers *numbers, uint64_t number, struct berth_error *error)
{
    uint64_t *place = vector_append(numbers);

    if (place == NULL)
        return error_set_memory(error);
    *place = number;
    return 0;
}

static uint64_t address_number(struct pci_address pci)
{
    return (uint64_t)pci.domain << 16 | (uint64_t)pci.bus << 8 | (uint64_t)pci.device << 3 |
           pci.function;
}

/* Collects all GPU nodes, including those that are not listed later, because they share a GPU with
 * others. */
static int collect_parts(struct amd_listing *listing, struct berth_error *error)
{
    const struct kfd_node *node;
    int code = 0;

    vector_for_each (node, &listing->nodes) {
        struct gpu_part *part;

        if (!kfd_is_gpu(node) && !node->is_hidden)
            continue;
        part = vector_append(&listing->parts);
        if (part == NULL)
            return error_set_memory(error);
        part->node = node;
        part->pci = kfd_pci(listing->root, node, &part->partition);
        if (node->unique_id.known && node->unique_id.value != 0)
            code = add_number(&listing->unique_ids, node->unique_id.value, error);
        if (code == 0 && part->partition > 0)
            code = add_number(&listing->partitioned, address_number(part->pci), error);
        if (code < 0)
            return code;
    }
    sort_numbers(&listing->unique_ids);
    sort_numbers(&listing->partitioned);
    return 0;
}

/* Sets the parent of a partition. Partitions share the unique id of their GPU. With newer kernels
 * each partition has its own unique id, and only the address is shared. */
static void name_parent(const struct amd_listing *listing, const struct gpu_part *part,
                        struct amd_key *key)
{
    struct optional_number unique_id = part->node->unique_id;

    if (unique_id.known && has_number(&listing->unique_ids, unique_id.value, true))
        snprintf(key->parent, sizeof(key->parent), "%016" PRIx64, unique_id.value);
    else if (part->pci.known && has_number(&listing->partitioned, address_number(part->pci), false))
        snprintf(key->parent, sizeof(key->parent), "%s", pci_format(part->pci).text);
}

/* Returns whether AMD's runtime counts the node. It ignores nodes without permission or without a
 * render node here. */
static bool is_reachable(const struct sysroot *root, const struct kfd_node *node)
{
    struct optional_number minor = node->drm_render_minor;

    if (node->is_hidden)
        return false;
    return root->recorded || !minor.known || minor.value == 0 ||
           sysroot_has(root, "/dev/dri/renderD%" PRIu64, minor.value);
}

static void note_unreachable(struct amd_listing *listing, const char *name, const char *render)
{
    if (listing->unreachable_count++ >= NAMED_MAX)
        return;
    if (listing->unreachable.length > 0)
        text_append(&listing->unreachable, ", ");
    text_append(&listing->unreachable, name);
    if (render != NULL)
        text_append_format(&listing->unreachable, " (/dev/dri/%s)", render);
}

static void note_unreachable_part(struct amd_listing *listing, const struct gpu_part *part)
{
    char render[40];
    char name[40];

    snprintf(name, sizeof(name), "KFD node %" PRIu32, part->node->number);
    snprintf(render, sizeof(render), "renderD%" PRIu64, part->node->drm_render_minor.value);
    note_unreachable(listing, part->pci.known ? pci_format(part->pci).text : name,
                     part->node->drm_render_minor.known ? render : NULL);
}

/* Adds a device. Takes over the path, also on failure. */
static int add_found(struct amd_listing *listing, const struct amd_key *key, char *path,
                     struct berth_error *error)
{
    struct device_id id = {
        .vendor = VENDOR_AMD, .index = listing->next_index, .mig = DEVICE_NO_MIG};
    struct device_finding *found = finding_list_add(&listing->findings->found, id);

    if (found == NULL) {
        free(path);
        return error_set_memory(error);
    }
    listing->next_index++;
    found->path = path;
    found->key = strdup(amd_key_format(key).text);
    found->device->pci = key->pci;
    if (key->parent[0] != '\0')
        found->device->parent = strdup(key->parent);
    if (found->key == NULL || (key->parent[0] != '\0' && found->device->parent == NULL))
        return error_set_memory(error);
    return 0;
}

static int add_parts(struct amd_listing *listing, struct berth_error *error)
{
    const struct gpu_part *part;
    int code = 0;

    vector_for_each (part, &listing->parts) {
        struct amd_key key = {.has_node = true,
                              .node = part->node->number,
                              .gpu_id = part->node->gpu_id,
                              .pci = part->pci};

        if (code < 0)
            break;
        if (!is_reachable(listing->root, part->node)) {
            note_unreachable_part(listing, part);
            continue;
        }
        name_parent(listing, part, &key);
        code = add_found(listing, &key, locality_pci_path(listing->root, part->pci), error);
    }
    return code;
}

/* Returns whether KFD knows the card. A node without an address may be any card: if the card were
 * listed as well, one GPU would have two ids and could be leased twice. */
static bool is_known_to_kfd(const struct amd_listing *listing, const struct drm_device *drm)
{
    const struct gpu_part *part;
    char render[40];

    vector_for_each (part, &listing->parts) {
        if ((!part->pci.known && !part->node->drm_render_minor.known) ||
            (part->pci.known && drm->pci.known && pci_compare(part->pci, drm->pci) == 0))
            return true;
        snprintf(render, sizeof(render), "renderD%" PRIu64, part->node->drm_render_minor.value);
        if (part->node->drm_render_minor.known && drm->render != NULL &&
            strcmp(drm->render, render) == 0)
            return true;
    }
    return false;
}

/* Adds the cards that KFD does not know: old cards, or all cards on a machine without KFD. */
static int add_others(struct amd_listing *listing, struct berth_error *error)
{
    struct drm_list list = {0};
    int code = drm_list_claimed(listing->root, &amd_table, &list, error);
    struct drm_device *drm;

    vector_for_each (drm, &list) {
        struct amd_key key = {.pci = drm->pci};

        if (code < 0)
            break;
        if (is_known_to_kfd(listing, drm))
            continue;
        if (!drm_is_reachable(listing->root, drm)) {
            note_unreachable(listing, drm->pci.known ? pci_format(drm->pci).text : drm->path,
                             drm->render);
            continue;
        }
        code = add_found(listing, &key, drm->path, error);
        drm->path = NULL;
    }
    drm_list_finish(&list);
    return code;
}

static int report_unreachable(struct amd_listing *listing, struct berth_error *error)
{
    if (listing->unreachable_count == 0)
        return 0;
    if (listing->unreachable_count > NAMED_MAX)
        text_append_format(&listing->unreachable, " and %zu more",
                           listing->unreachable_count - NAMED_MAX);
    if (text_failed(&listing->unreachable) ||
        machine_report_add_problem(&listing->findings->problems, vendor_name(VENDOR_AMD),
                                   "left out, because their device files are missing here: %s",
                                   text_string(&listing->unreachable)) < 0)
        return error_set_memory(error);
    return 0;
}

/* Adds a candidate; its key is the packed node. */
static int add_candidate(const struct kfd_node *node, struct findings *findings,
                         struct berth_error *error)
{
    struct device_id id = {.vendor = VENDOR_AMD, .mig = DEVICE_NO_MIG};
    struct device_finding *candidate = finding_list_add(&findings->found, id);
    struct text key = {0};

    if (candidate == NULL)
        return error_set_memory(error);
    kfd_pack_node(node, &key);
    candidate->key = text_detach(&key);
    return candidate->key == NULL ? error_set_memory(error) : 0;
}

static int amd_list_candidates(struct vendor_context *context, struct findings *findings,
                               struct berth_error *error)
{
    struct kfd_number_list numbers = {0};
    int code = kfd_list(context->root, &numbers, error);

    for (size_t i = 0; i < numbers.count && code == 0; i++)
        code = add_candidate(&(struct kfd_node){.number = numbers.items[i], .is_stuck = true},
                             findings, error);
    vector_finish(&numbers);
    return code;
}

static int refuse_candidate(struct berth_error *error)
{
    return error_set(error, BERTH_ERROR_INVALID, "expected the key of a KFD node, got another");
}

static int amd_read_candidate(struct vendor_context *context,
                              const struct device_finding *candidate, struct findings *findings,
                              struct berth_error *error)
{
    struct kfd_node node;

    if (candidate->key == NULL || !kfd_unpack_node(candidate->key, &node))
        return refuse_candidate(error);
    if (kfd_read_node(context->root, node.number, &node) < 0)
        return 0;
    return add_candidate(&node, findings, error);
}

static int compare_nodes(const void *one, const void *other)
{
    const struct kfd_node *mine = one;
    const struct kfd_node *theirs = other;

    return (mine->number > theirs->number) - (mine->number < theirs->number);
}

static int collect_nodes(struct amd_listing *listing, const struct finding_list *candidates,
                         struct berth_error *error)
{
    const struct device_finding *candidate;

    vector_for_each (candidate, candidates) {
        struct kfd_node *node = vector_append(&listing->nodes);

        if (node == NULL)
            return error_set_memory(error);
        if (candidate->key == NULL || !kfd_unpack_node(candidate->key, node))
            return refuse_candidate(error);
    }
    if (listing->nodes.count > 1)
        qsort(listing->nodes.items, listing->nodes.count, sizeof(*listing->nodes.items),
              compare_nodes);
    return 0;
}

static int amd_list(struct vendor_context *context, const struct finding_list *candidates,
                    struct findings *findings, struct berth_error *error)
{
    struct amd_listing listing = {.root = context->root, .findings = findings};
    int code = collect_nodes(&listing, candidates, error);

    if (code == 0)
        code = collect_parts(&listing, error);
    if (code == 0)
        code = add_parts(&listing, error);
    if (code == 0)
        code = add_others(&listing, error);
    if (code == 0)
        code = report_unreachable(&listing, error);
    listing_finish(&listing);
    return code;
}

static const char *const drivers[] = {"amdgpu", NULL};

const struct vendor_table amd_table = {
    .vendor = VENDOR_AMD,
    .drivers = drivers,
    .pci_vendor = 0x1002,
    .timeout = DURATION_SECOND / 10,
    .lane = LANE_SYSFS,
    .list_candidates = amd_list_candidates,
    .read_candidate = amd_read_candidate,
    .list = amd_list,
    .read = amd_read,
    .links = amd_links,
};
