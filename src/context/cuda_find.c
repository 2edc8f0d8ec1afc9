/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of CUDA's devices a device of ours is.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/quote.h"
#include "context/cuda.h"

#define UUID_FORM "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"

/* What tells devices apart. */
struct identity {
    char uuid[sizeof(UUID_FORM)]; /* without GPU- or MIG- in front; empty: unknown */
    struct pci_address pci;
};

struct search {
    struct cuda *cuda;
    const struct context_target *target;
    struct identity wanted;
    int shown;
    int matches;
    int device;
    int failure; /* the first of devices that would not say what they are; 0: none */
};

/* Whether the text is a UUID: digits where the form has an x. */
static bool is_uuid(const char *text)
{
    static const char form[] = UUID_FORM;
    size_t i = 0;

    while (form[i] != '\0' &&
           (form[i] == 'x' ? isxdigit((unsigned char)text[i]) != 0 : text[i] == form[i]))
        i++;
    return form[i] == '\0' && text[i] == '\0';
}

/* What is known of the target; its PCI address is that of all partitions of its GPU. */
static struct identity identify_target(const struct context_target *target)
{
    const char *prefix = target->is_partition ? "MIG-" : "GPU-";
    struct identity identity = {0};

    if (target->uuid != NULL && strncmp(target->uuid, prefix, strlen(prefix)) == 0 &&
        is_uuid(target->uuid + strlen(prefix)))
        memcpy(identity.uuid, target->uuid + strlen(prefix), sizeof(identity.uuid));
    if (!target->is_partition)
        identity.pci = target->pci;
    return identity;
}

/* Writes a UUID as the form is; one of zeros is none. */
static void format_uuid(const struct cuda_uuid *uuid, char *out)
{
    static const char form[] = UUID_FORM;
    static const char digits[] = "0123456789abcdef";
    unsigned written = 0;

    if (memcmp(uuid, &(struct cuda_uuid){0}, sizeof(*uuid)) == 0)
        return;
    for (size_t i = 0; form[i] != '\0'; i++) {
        unsigned char byte = uuid->bytes[written / 2 % sizeof(uuid->bytes)];

        out[i] = form[i];
        if (form[i] == 'x')
            out[i] = digits[written++ % 2 == 0 ? byte >> 4 : byte & 0xf];
    }
}

/* The first version of the call tells a partition's GPU. */
static int get_uuid(const struct search *search, int device, char *out)
{
    const struct cuda_functions *functions = &search->cuda->functions;
    struct cuda_uuid uuid = {0};
    int status = 0;

    if (functions->uuid_v2 != NULL)
        status = functions->uuid_v2(&uuid, device);
    else if (functions->uuid_v1 != NULL && !search->target->is_partition)
        status = functions->uuid_v1(&uuid, device);
    if (status == 0)
        format_uuid(&uuid, out);
    return status;
}

static int get_pci(const struct search *search, int device, struct pci_address *address)
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

/* What CUDA says of its device: what it does not say is unknown. Returns the first failure. */
static int identify(const struct search *search, int device, struct identity *ret_identity)
{
    struct identity identity = {0};
    int status = get_uuid(search, device, identity.uuid);
    int pci_status = get_pci(search, device, &identity.pci);

    *ret_identity = identity;
    return status != 0 ? status : pci_status;
}

enum likeness { IS_ANOTHER, IS_THE_SAME, CANNOT_TELL };

/* A UUID decides; the place on the bus only where one of the two has none. */
static enum likeness compare(const struct identity *one, const struct identity *other)
{
    bool is_same;

    if (*one->uuid != '\0' && *other->uuid != '\0')
        is_same = strcasecmp(one->uuid, other->uuid) == 0;
    else if (one->pci.known && other->pci.known)
        is_same = pci_compare(one->pci, other->pci) == 0;
    else
        return CANNOT_TELL;
    return is_same ? IS_THE_SAME : IS_ANOTHER;
}

/* Looks at one of CUDA's devices. */
static int look_at(struct search *search, int ordinal, struct berth_error *error)
{
    struct identity identity = {0};
    enum likeness likeness;
    int device = -1;
    int status = search->cuda->functions.by_ordinal(&device, ordinal);

    if (status == 0) {
        if (device < 0 || device >= CUDA_DEVICES_MOST)
            return error_set(error, BERTH_ERROR_DRIVER,
                             "CUDA: wanted a device number below %d for its device %d, found %d",
                             CUDA_DEVICES_MOST, ordinal, device);
        status = identify(search, device, &identity);
    }
    likeness = compare(&search->wanted, &identity);
    if (likeness == CANNOT_TELL && search->failure == 0)
        search->failure = status;
    if (likeness == IS_THE_SAME) {
        search->matches++;
        search->device = device;
    }
    return 0;
}

static int look_at_all(struct search *search, struct berth_error *error)
{
    int count = -1;
    int status = search->cuda->functions.count(&count);
    int code = 0;

    if (status != 0)
        return driver_refuse(&search->cuda->driver, status, BERTH_ERROR_DRIVER, error,
                             "CUDA: wanted to count its devices");
    if (count < 0 || count > CUDA_DEVICES_MOST)
        return error_set(error, BERTH_ERROR_DRIVER,
                         "CUDA: wanted at most %d devices, found that it shows %d",
                         CUDA_DEVICES_MOST, count);
    search->shown = count;
    for (int i = 0; i < count && code == 0; i++)
        code = look_at(search, i, error);
    return code;
}

/* What the device was looked for by. */
static struct quoted describe(const struct search *search)
{
    return quote(*search->wanted.uuid != '\0' ? search->target->uuid
                                              : pci_format(search->wanted.pci).text);
}

static int not_found(const struct search *search, struct berth_error *error)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");

    if (search->matches > 1)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "CUDA: wanted one device that is %s, found %d", describe(search).text,
                         search->matches);
    if (search->failure != 0)
        return driver_refuse(&search->cuda->driver, search->failure, BERTH_ERROR_DRIVER, error,
                             "CUDA: wanted %s, found a device that does not say what it is",
                             describe(search).text);
    return error_set(error, BERTH_ERROR_NOT_FOUND,
                     "CUDA: wanted %s, found that CUDA does not show it among its %d: "
                     "CUDA_VISIBLE_DEVICES%s%s may hide it",
                     describe(search).text, search->shown, visible == NULL ? "" : "=",
                     visible == NULL ? "" : quote(visible).text);
}

int cuda_find(struct driver *driver, const struct context_target *target,
              struct native_device *ret_device, struct berth_error *error)
{
    struct search search = {
        .cuda = (struct cuda *)driver,
        .target = target,
        .wanted = identify_target(target),
    };
    int code;

    if (*search.wanted.uuid == '\0' && !search.wanted.pci.known)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "CUDA: wanted %s to find it by, found %s",
                         target->is_partition ? "a partition's UUID (MIG-...)"
                                              : "a UUID (GPU-...) or a PCI address",
                         target->uuid == NULL ? "none" : quote(target->uuid).text);
    code = look_at_all(&search, error);
    if (code < 0)
        return code;
    if (search.matches != 1)
        return not_found(&search, error);
    *ret_device = (struct native_device){.number = search.device};
    return 0;
}
