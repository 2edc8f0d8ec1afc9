/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds CUDA's device for a device of the pool.
 */
#include <stdlib.h>

#include "base/error.h"
#include "base/text/quote.h"
#include "context/cuda.h"
#include "context/uuid.h"

/* The facts that tell devices apart. */
struct identity {
    struct uuid uuid;
    struct pci_address pci;
};

struct cuda_search {
    struct cuda *cuda;
    const struct context_target *target;
    struct identity wanted;
    int shown;
    int matches;
    int device;
    int failure; /* the first status of devices that could not be identified; 0: none */
};

/* Returns the target's identity. The PCI address of a partition is that of its GPU and identifies
 * nothing. */
static struct identity identify_target(const struct context_target *target)
{
    struct identity identity = {.uuid = uuid_parse(target->uuid, target->is_partition)};

    if (!target->is_partition)
        identity.pci = target->pci;
    return identity;
}

/* Gets a device's UUID. For a partition, the first version of the call would return its GPU's
 * UUID. */
static int get_uuid(const struct cuda_search *search, int device, struct uuid *uuid)
{
    const struct cuda_functions *functions = &search->cuda->functions;
    struct cuda_uuid answer = {0};
    int status = 0;

    if (functions->uuid_v2 != NULL)
        status = functions->uuid_v2(&answer, device);
    else if (functions->uuid_v1 != NULL && !search->target->is_partition)
        status = functions->uuid_v1(&answer, device);
    if (status == 0)
        *uuid = uuid_of(answer.bytes);
    return status;
}

static int get_pci(const struct cuda_search *search, int device, struct pci_address *address)
{
    const struct cuda_functions *functions = &search->cuda->functions;
    char text[32] = "";
    int status;

    if (functions->pci == NULL)
        return 0;
    status = functions->pci(text, sizeof(text), device);
    text[sizeof(text) - 1] = '\0';
    if (status == 0 && pci_parse(text, address, NULL) < 0)
        address->known = false;
    return status;
}

/* Gets the identity of CUDA's device; facts that CUDA does not report are unknown. Returns the
 * first failure. */
static int identify_device(const struct cuda_search *search, int device,
                           struct identity *ret_identity)
{
    struct identity identity = {0};
    int status = get_uuid(search, device, &identity.uuid);
    int pci_status = get_pci(search, device, &identity.pci);

    *ret_identity = identity;
    return status != 0 ? status : pci_status;
}

enum likeness { IS_ANOTHER, IS_THE_SAME, CANNOT_TELL };

/* The UUID decides. The PCI address decides only if one of the two has no UUID. */
static enum likeness compare_identities(const struct identity *one, const struct identity *other)
{
    bool is_same;

    if (one->uuid.known && other->uuid.known)
        is_same = uuid_equals(&one->uuid, &other->uuid);
    else if (one->pci.known && other->pci.known)
        is_same = pci_compare(one->pci, other->pci) == 0;
    else
        return CANNOT_TELL;
    return is_same ? IS_THE_SAME : IS_ANOTHER;
}

/* Compares one of CUDA's devices with the target. */
static int check_device(struct cuda_search *search, int ordinal, struct berth_error *error)
{
    struct identity identity = {0};
    enum likeness likeness;
    int device = -1;
    int status = search->cuda->functions.by_ordinal(&device, ordinal);

    if (status == 0) {
        if (device < 0 || device >= CUDA_DEVICES_MAX)
            return error_set(error, BERTH_ERROR_DRIVER,
                             "CUDA: expected a device number below %d for its device %d, got %d",
                             CUDA_DEVICES_MAX, ordinal, device);
        status = identify_device(search, device, &identity);
    }
    likeness = compare_identities(&search->wanted, &identity);
    if (likeness == CANNOT_TELL && search->failure == 0)
        search->failure = status;
    if (likeness == IS_THE_SAME) {
        search->matches++;
        search->device = device;
    }
    return 0;
}

static int check_all_devices(struct cuda_search *search, struct berth_error *error)
{
    int count = -1;
    int status = search->cuda->functions.count(&count);
    int code = 0;

    if (status != 0)
        return context_driver_set_error(&search->cuda->driver, status, BERTH_ERROR_DRIVER, error,
                                        "CUDA: cannot count the devices");
    if (count < 0 || count > CUDA_DEVICES_MAX)
        return error_set(error, BERTH_ERROR_DRIVER, "CUDA: expected at most %d devices, got %d",
                         CUDA_DEVICES_MAX, count);
    search->shown = count;
    for (int i = 0; i < count && code == 0; i++)
        code = check_device(search, i, error);
    return code;
}

/* Returns the identity that was searched for. */
static struct quoted describe_target(const struct cuda_search *search)
{
    return quote(search->wanted.uuid.known ? search->target->uuid
                                           : pci_format(search->wanted.pci).text);
}

static int set_missing_error(const struct cuda_search *search, struct berth_error *error)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (search->matches > 1)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "CUDA: expected one device %s, got %d",
                         describe_target(search).text, search->matches);
    if (search->failure != 0)
        return context_driver_set_error(
            &search->cuda->driver, search->failure, BERTH_ERROR_DRIVER, error,
            "CUDA: cannot find %s: a device cannot be identified", describe_target(search).text);
    return error_set(error, BERTH_ERROR_NOT_FOUND,
                     "CUDA: cannot find %s among %d device%s: CUDA_VISIBLE_DEVICES%s%s may hide it",
                     describe_target(search).text, search->shown, search->shown == 1 ? "" : "s",
                     visible == NULL ? "" : "=", visible == NULL ? "" : quote(visible).text);
}

int cuda_find(struct driver *driver, const struct context_target *target,
              struct native_device *ret_device, struct berth_error *error)
{
    struct cuda_search search = {
        .cuda = (struct cuda *)driver,
        .target = target,
        .wanted = identify_target(target),
    };
    int code;

    if (!search.wanted.uuid.known && !search.wanted.pci.known)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "CUDA: cannot find the device: expected %s, got %s",
                         target->is_partition ? "a partition's UUID (MIG-...)"
                                              : "a UUID (GPU-...) or a PCI address",
                         target->uuid == NULL ? "none" : quote(target->uuid).text);
    code = check_all_devices(&search, error);
    if (code < 0)
        return code;
    if (search.matches != 1)
        return set_missing_error(&search, error);
    *ret_device = (struct native_device){.number = search.device};
    return 0;
}
