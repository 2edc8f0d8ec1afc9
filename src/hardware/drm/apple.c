/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU of an Apple machine that runs Linux, with the asahi driver on the platform bus.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "hardware/drm/drm_gpu.h"

#define COMPATIBLE_PREFIX "apple,agx-"

/* The names of the GPU in the device tree, by chip or by design, and the chip's market name. */
static const struct {
    const char *chip;
    const char *design;
    const char *name;
} chips[] = {
    {"t8103", "g13g", "M1"},       {"t6000", "g13s", "M1 Pro"},   {"t6001", "g13c", "M1 Max"},
    {"t6002", "g13d", "M1 Ultra"}, {"t8112", "g14g", "M2"},       {"t6020", "g14s", "M2 Pro"},
    {"t6021", "g14c", "M2 Max"},   {"t6022", "g14d", "M2 Ultra"},
};

static int list_devices(struct vendor_context *context, const struct finding_list *candidates,
                        struct findings *findings, struct berth_error *error)
{
    (void)candidates;
    return drm_gpu_list(context, &apple_table, findings, error);
}

/* Returns "Apple M1 (agx-g13g)", or "Apple AGX g99" for a later chip. NULL if memory ran out. */
static char *name_of(const struct sysroot *root, const char *path)
{
    char *compatible = drm_gpu_compatible(root, path, COMPATIBLE_PREFIX "g", false);
    struct text name = {0};
    const char *model;

    if (compatible == NULL)
        compatible = drm_gpu_compatible(root, path, COMPATIBLE_PREFIX, false);
    model = compatible == NULL ? NULL : compatible + strlen(COMPATIBLE_PREFIX);
    for (size_t i = 0; model != NULL && i < COUNT(chips) && name.length == 0; i++)
        if (strcmp(model, chips[i].chip) == 0 || strcmp(model, chips[i].design) == 0)
            text_append_format(&name, "Apple %s (agx-%s)", chips[i].name, model);
    if (name.length == 0)
        text_append_format(&name, "Apple AGX%s%s", model == NULL ? "" : " ",
                           model == NULL ? "" : model);
    free(compatible);
    return text_detach(&name);
}

static int read_device(struct vendor_context *context, const struct device_finding *wanted,
                       struct findings *findings, struct berth_error *error)
{
    struct drm_device drm;
    struct device *device;
    int code = drm_gpu_start_read(context, wanted, findings, &device, &drm, error);

    if (code < 0)
        return code;
    device->name = name_of(context->root, drm.path);
    device->kind = DEVICE_KIND_INTEGRATED;
    if (!device->asleep)
        device->health = HEALTH_OK; /* the driver does not report health */
    drm_device_finish(&drm);
    return 0;
}

static const char *const drivers[] = {"asahi", NULL};

const struct vendor_table apple_table = {
    .vendor = VENDOR_APPLE,
    .drivers = drivers,
    .timeout = DRM_GPU_TIMEOUT,
    .lane = LANE_SYSFS,
    .list = list_devices,
    .read = read_device,
};
