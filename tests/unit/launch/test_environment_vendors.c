/* SPDX-License-Identifier: Apache-2.0
 *
 * How a lease of each vendor changes each GPU variable, alone and beside each other vendor: one
 * table that must be complete.
 */
#include "support/programs/launch_environments.h"

#include "base/count.h"
#include "base/text/text.h"

/* The result for a variable that the shell has set, other than a new value. */
static const char kept[] = "as inherited";
static const char gone[] = "removed";

/* The kind of lease. */
enum manner {
    BY_INDEX,
    BY_UUID,   /* --uuid */
    BY_MPS,    /* --sharing mps */
    IN_PARTS,  /* of MIG instances, or of AMD's partitions */
    COMPOSITE, /* cards are devices, not tiles */
    UNLEASED,  /* --or-cpu */
};

/* The UUID of nvidiaN is GPU-nN, of amdN GPU-aN, and of nvidia0.N MIG-N; amd8 and amd9 are
 * partitions without UUIDs; intel0 has one tile, intel1 and intel2 have two. */
static const struct row {
    const char *leased; /* in the order of the lease */
    uint32_t host;      /* the vendors of the host */
    enum manner manner;
    const char *cuda;      /* CUDA_VISIBLE_DEVICES */
    const char *container; /* NVIDIA_VISIBLE_DEVICES */
    const char *rocr;      /* ROCR_VISIBLE_DEVICES */
    const char *hip;       /* HIP_VISIBLE_DEVICES */
    const char *ze;        /* ZE_AFFINITY_MASK */
} rows[] = {
    /* Each vendor on its own. */
    {"nvidia2,nvidia0", NVIDIA, BY_INDEX, "2,0", "GPU-n2,GPU-n0", kept, gone, kept},
    {"nvidia2,nvidia0", NVIDIA, BY_UUID, "GPU-n2,GPU-n0", "GPU-n2,GPU-n0", kept, gone, kept},
    {"nvidia2", NVIDIA, BY_MPS, "GPU-n2", "GPU-n2", kept, gone, kept},
    {"nvidia0.3,nvidia1", NVIDIA, IN_PARTS, "MIG-3,GPU-n1", "MIG-3,GPU-n1", kept, gone, kept},
    {"", NVIDIA, UNLEASED, "-1", "void", kept, gone, kept},
    {"amd3,amd1", AMD, BY_INDEX, gone, kept, "3,1", gone, kept},
    {"amd3,amd1", AMD, BY_UUID, gone, kept, "GPU-a3,GPU-a1", gone, kept},
    {"amd9,amd8", AMD, IN_PARTS, gone, kept, "9,8", gone, kept},
    {"amd8,amd1", AMD, BY_UUID, gone, kept, "8,GPU-a1", gone, kept},
    {"", AMD, UNLEASED, kept, kept, "-1", gone, kept},
    {"intel2,intel0", INTEL, BY_INDEX, kept, kept, kept, gone, "3,4,0"},
    {"intel1", INTEL, BY_UUID, kept, kept, kept, gone, "1,2"},
    {"intel2,intel0", INTEL, COMPOSITE, kept, kept, kept, gone, "2,0"},
    {"", INTEL, UNLEASED, kept, kept, kept, gone, "99999"},
    {"apple0", APPLE, BY_INDEX, kept, kept, kept, gone, kept},
    {"apple0", APPLE, BY_UUID, kept, kept, kept, gone, kept},
    {"", APPLE, UNLEASED, kept, kept, kept, gone, kept},
    {"dri1", DRI, BY_INDEX, kept, kept, kept, gone, kept},
    {"dri1", DRI, BY_UUID, kept, kept, kept, gone, kept},
    {"", DRI, UNLEASED, kept, kept, kept, gone, kept},

    /* One vendor is leased, and the host has another one. */
    {"nvidia1", NVIDIA | AMD, BY_INDEX, "1", "GPU-n1", "-1", gone, kept},
    {"nvidia1", NVIDIA | INTEL, BY_INDEX, "1", "GPU-n1", kept, gone, "99999"},
    {"nvidia1", NVIDIA | APPLE, BY_INDEX, "1", "GPU-n1", kept, gone, kept},
    {"nvidia1", NVIDIA | DRI, BY_INDEX, "1", "GPU-n1", kept, gone, kept},
    {"amd3,amd2", AMD | NVIDIA, BY_INDEX, "-1", "void", "3,2", "0,1", kept},
    {"amd3,amd2", AMD | INTEL, BY_INDEX, gone, kept, "3,2", gone, "99999"},
    {"amd3,amd2", AMD | APPLE, BY_INDEX, gone, kept, "3,2", gone, kept},
    {"amd3,amd2", AMD | DRI, BY_INDEX, gone, kept, "3,2", gone, kept},
    {"intel1", INTEL | NVIDIA, BY_INDEX, "-1", "void", kept, gone, "1,2"},
    {"intel1", INTEL | AMD, BY_INDEX, kept, kept, "-1", gone, "1,2"},
    {"intel1", INTEL | APPLE, BY_INDEX, kept, kept, kept, gone, "1,2"},
    {"intel1", INTEL | DRI, BY_INDEX, kept, kept, kept, gone, "1,2"},
    {"apple0", APPLE | NVIDIA, BY_INDEX, "-1", "void", kept, gone, kept},
    {"apple0", APPLE | AMD, BY_INDEX, kept, kept, "-1", gone, kept},
    {"apple0", APPLE | INTEL, BY_INDEX, kept, kept, kept, gone, "99999"},
    {"apple0", APPLE | DRI, BY_INDEX, kept, kept, kept, gone, kept},
    {"dri0", DRI | NVIDIA, BY_INDEX, "-1", "void", kept, gone, kept},
    {"dri0", DRI | AMD, BY_INDEX, kept, kept, "-1", gone, kept},
    {"dri0", DRI | INTEL, BY_INDEX, kept, kept, kept, gone, "99999"},
    {"dri0", DRI | APPLE, BY_INDEX, kept, kept, kept, gone, kept},

    /* Two vendors in one lease, in either order. */
    {"nvidia1,amd4", NVIDIA | AMD, BY_INDEX, "1", "GPU-n1", "4", "0", kept},
    {"nvidia1,intel2", NVIDIA | INTEL, BY_INDEX, "1", "GPU-n1", kept, gone, "3,4"},
    {"nvidia1,apple0", NVIDIA | APPLE, BY_INDEX, "1", "GPU-n1", kept, gone, kept},
    {"nvidia1,dri0", NVIDIA | DRI, BY_INDEX, "1", "GPU-n1", kept, gone, kept},
    {"amd4,nvidia1", AMD | NVIDIA, BY_INDEX, "1", "GPU-n1", "4", "0", kept},
    {"amd4,intel2", AMD | INTEL, BY_INDEX, gone, kept, "4", gone, "3,4"},
    {"amd4,apple0", AMD | APPLE, BY_INDEX, gone, kept, "4", gone, kept},
    {"amd4,dri0", AMD | DRI, BY_INDEX, gone, kept, "4", gone, kept},
    {"intel2,nvidia1", INTEL | NVIDIA, BY_INDEX, "1", "GPU-n1", kept, gone, "3,4"},
    {"intel2,amd4", INTEL | AMD, BY_INDEX, gone, kept, "4", gone, "3,4"},
    {"intel2,apple0", INTEL | APPLE, BY_INDEX, kept, kept, kept, gone, "3,4"},
    {"intel2,dri0", INTEL | DRI, BY_INDEX, kept, kept, kept, gone, "3,4"},
    {"apple0,nvidia1", APPLE | NVIDIA, BY_INDEX, "1", "GPU-n1", kept, gone, kept},
    {"apple0,amd4", APPLE | AMD, BY_INDEX, gone, kept, "4", gone, kept},
    {"apple0,intel2", APPLE | INTEL, BY_INDEX, kept, kept, kept, gone, "3,4"},
    {"apple0,dri0", APPLE | DRI, BY_INDEX, kept, kept, kept, gone, kept},
    {"dri0,nvidia1", DRI | NVIDIA, BY_INDEX, "1", "GPU-n1", kept, gone, kept},
    {"dri0,amd4", DRI | AMD, BY_INDEX, gone, kept, "4", gone, kept},
    {"dri0,intel2", DRI | INTEL, BY_INDEX, kept, kept, kept, gone, "3,4"},
    {"dri0,apple0", DRI | APPLE, BY_INDEX, kept, kept, kept, gone, kept},

    /* Several devices of each vendor. */
    {"nvidia1,amd4,nvidia2,amd2", NVIDIA | AMD, BY_INDEX, "1,2", "GPU-n1,GPU-n2", "4,2", "0,1",
     kept},
    {"nvidia0.3,amd9,amd2", NVIDIA | AMD, IN_PARTS, "MIG-3", "MIG-3", "9,2", "0,1", kept},
    {"nvidia1,amd4,intel1", NVIDIA | AMD | INTEL, BY_UUID, "GPU-n1", "GPU-n1", "GPU-a4", "0",
     "1,2"},
    {"amd4,amd9", NVIDIA | AMD | INTEL, BY_UUID, "-1", "void", "GPU-a4,9", "0,1", "99999"},
    {"nvidia1", NVIDIA | AMD | INTEL, BY_MPS, "GPU-n1", "GPU-n1", "-1", gone, "99999"},
    {"nvidia1,intel1", NVIDIA | AMD | INTEL, COMPOSITE, "1", "GPU-n1", "-1", gone, "1"},
    {"amd4,intel2", NVIDIA | AMD | INTEL | APPLE | DRI, BY_INDEX, "-1", "void", "4", "0", "3,4"},
    {"dri0", NVIDIA | AMD | INTEL | APPLE | DRI, BY_INDEX, "-1", "void", "-1", gone, "99999"},
    {"apple0", NVIDIA | AMD | INTEL | APPLE | DRI, BY_INDEX, "-1", "void", "-1", gone, "99999"},
    {"", NVIDIA | AMD | INTEL | APPLE | DRI, UNLEASED, "-1", "void", "-1", gone, "99999"},
    {"nvidia0,amd0,intel0,apple0,dri0", NVIDIA | AMD | INTEL | APPLE | DRI, BY_INDEX, "0", "GPU-n0",
     "0", "0", "0"},
    /* A host without GPUs, and a leased vendor that is missing in the host's vendors. */
    {"", 0, UNLEASED, kept, kept, kept, gone, kept},
    {"nvidia1", 0, BY_INDEX, "1", "GPU-n1", kept, gone, kept},
};

/* ---- The rows of the table are true ---- */

static void describe_device(struct device *device)
{
    static const uint32_t tiles[] = {1, 2, 2}, first_tiles[] = {0, 1, 3};
    struct device_id id = device->id;
    struct text uuid = {0};

    if (id.vendor == VENDOR_NVIDIA && id.mig != DEVICE_NO_MIG)
        text_append_format(&uuid, "MIG-%u", id.mig);
    else if (id.vendor == VENDOR_NVIDIA)
        text_append_format(&uuid, "GPU-n%u", id.index);
    else if (id.vendor == VENDOR_AMD && id.index < 8)
        text_append_format(&uuid, "GPU-a%u", id.index);
    else if (id.vendor == VENDOR_AMD)
        device->parent = copy_of("0123456789abcdef");
    if (uuid.length > 0)
        device->uuid = copy_of(text_string(&uuid));
    text_finish(&uuid);
    if (id.vendor == VENDOR_INTEL) {
        device->tiles = optional_number_of(tiles[id.index]);
        device->ordinal = optional_number_of(id.index);
        device->first_tile = optional_number_of(first_tiles[id.index]);
    }
}

/* The value in the polluted environment. */
static const char *inherited_value(const char *name)
{
    size_t length = strlen(name);

    for (const char *const *entry = polluted; *entry != NULL; entry++) {
        if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=')
            return *entry + length + 1;
    }
    fail_msg("%s is not in the polluted environment", name);
    return NULL;
}

static void check_variable(const struct row *row, const struct launched *launched, const char *name,
                           const char *wanted)
{
    const char *found = value_of(launched, name);
    const char *value = wanted == kept ? inherited_value(name) : wanted == gone ? NULL : wanted;

    if ((found == NULL) != (value == NULL) || (found != NULL && strcmp(found, value) != 0))
        fail_msg("row %td, a lease of \"%s\": %s: expected %s, got %s", row - rows, row->leased,
                 name, value == NULL ? "none" : value, found == NULL ? "none" : found);
}

static uint32_t leased_vendors(const struct row *row)
{
    struct machine machine = {0};
    const struct device *device;
    uint32_t vendors = 0;

    machine_add_ids(&machine, row->leased);
    vector_for_each (device, &machine.devices)
        vendors |= UINT32_C(1) << device->id.vendor;
    machine_finish(&machine);
    return vendors;
}

static void check_row(const struct row *row)
{
    static const struct mps_facts mps = {.pipe_dir = "/pipe", .log_dir = "/log"};
    const char *inherited[COUNT(polluted) + 1] = {"ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"};
    struct launched launched = leased(row->leased, row->host);
    uint32_t vendors = leased_vendors(row);
    struct device *device;

    vector_for_each (device, &launched.machine.devices)
        describe_device(device);
    launched.facts.uuid = row->manner == BY_UUID;
    launched.facts.mps = row->manner == BY_MPS ? &mps : NULL;
    launched.facts.lease = row->manner == UNLEASED ? 0 : 12;
    memcpy(inherited + 1, polluted, sizeof(polluted));
    launch(&launched, row->manner == COMPOSITE ? inherited : polluted);
    check_variable(row, &launched, "CUDA_VISIBLE_DEVICES", row->cuda);
    check_variable(row, &launched, "NVIDIA_VISIBLE_DEVICES", row->container);
    check_variable(row, &launched, "ROCR_VISIBLE_DEVICES", row->rocr);
    check_variable(row, &launched, "HIP_VISIBLE_DEVICES", row->hip);
    check_variable(row, &launched, "ZE_AFFINITY_MASK", row->ze);
    check_variable(row, &launched, "CUDA_DEVICE_ORDER", vendors & NVIDIA ? "PCI_BUS_ID" : kept);
    check_variable(row, &launched, "ZE_ENABLE_PCI_ID_DEVICE_ORDER", vendors & INTEL ? "1" : kept);
    check_variable(row, &launched, "GPU_DEVICE_ORDINAL", gone);
    check_variable(row, &launched, "ONEAPI_DEVICE_SELECTOR", gone);
    check_variable(row, &launched, "ZE_FLAT_DEVICE_HIERARCHY",
                   row->manner == COMPOSITE ? "COMPOSITE" : gone);
    check_variable(row, &launched, "BERTH_DEVICES", row->leased);
    check_variable(row, &launched, "PATH", kept);
    check_variable(row, &launched, "HOME", kept);
    launched_finish(&launched);
}

static void every_row_holds(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
}

/* ---- No case is missing ---- */

/* Returns true if a row leases these vendors, with a first device of this vendor. */
static bool has_row(uint32_t leased, enum vendor first, uint32_t host, enum manner manner)
{
    for (size_t i = 0; i < COUNT(rows); i++) {
        if (leased_vendors(&rows[i]) == leased && rows[i].host == host &&
            rows[i].manner == manner &&
            (leased == 0 ||
             strncmp(rows[i].leased, vendor_name(first), strlen(vendor_name(first))) == 0))
            return true;
    }
    return false;
}

static void no_vendor_is_missing(void **state)
{
    static const struct {
        enum manner manner;
        uint32_t vendors; /* the vendors with this kind of lease */
    } manners[] = {
        {BY_INDEX, UINT32_MAX},   {BY_UUID, UINT32_MAX}, {BY_MPS, NVIDIA},
        {IN_PARTS, NVIDIA | AMD}, {COMPOSITE, INTEL},
    };

    (void)state;
    for (enum vendor vendor = 0; vendor <= VENDOR_DRI; vendor++) {
        uint32_t alone = UINT32_C(1) << vendor;

        for (size_t i = 0; i < COUNT(manners); i++)
            assert_int_equal(has_row(alone, vendor, alone, manners[i].manner),
                             (manners[i].vendors & alone) != 0);
        assert_true(has_row(0, vendor, alone, UNLEASED));
    }
}

static void no_pair_of_vendors_is_missing(void **state)
{
    (void)state;
    for (enum vendor one = 0; one <= VENDOR_DRI; one++) {
        for (enum vendor other = 0; other <= VENDOR_DRI; other++) {
            uint32_t both = UINT32_C(1) << one | UINT32_C(1) << other;

            if (one == other)
                continue;
            assert_true(has_row(UINT32_C(1) << one, one, both, BY_INDEX));
            assert_true(has_row(both, one, both, BY_INDEX));
        }
    }
}

/* Checks that some row sets each variable to devices, and some row to its hiding value. */
static void each_mask_is_set_and_hides(void **state)
{
    static const struct {
        size_t offset;
        const char *hidden;
    } masks[] = {
        {offsetof(struct row, cuda), "-1"},
        {offsetof(struct row, container), "void"},
        {offsetof(struct row, rocr), "-1"},
        {offsetof(struct row, ze), "99999"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(masks); i++) {
        bool is_set = false;
        bool hides = false;

        for (size_t k = 0; k < COUNT(rows); k++) {
            const char *value = *(const char *const *)((const char *)&rows[k] + masks[i].offset);
            bool is_hidden = strcmp(value, masks[i].hidden) == 0;

            hides = hides || is_hidden;
            is_set = is_set || (!is_hidden && value != kept && value != gone);
        }
        assert_true(is_set && hides);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_holds),
        cmocka_unit_test(no_vendor_is_missing),
        cmocka_unit_test(no_pair_of_vendors_is_missing),
        cmocka_unit_test(each_mask_is_set_and_hides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
