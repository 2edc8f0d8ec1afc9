/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/drm/drm_gpu.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/utf8.h"
#include "hardware/sysfs/locality.h"

/* Adds a device whose key is its path. */
static struct device_finding *add_found(struct finding_list *list, struct device_id id,
                                        const char *path)
{
    struct device_finding *found = finding_list_add(list, id);

    if (found == NULL)
        return NULL;
    found->key = strdup(path);
    found->path = strdup(path);
    return found->key == NULL || found->path == NULL ? NULL : found;
}

static int add_listed(const struct vendor_context *context, const struct vendor_table *table,
                      const struct drm_device *drm, struct findings *findings,
                      struct berth_error *error)
{
    struct device_id id = {
        .vendor = table->vendor,
        .index = (uint32_t)findings->found.count,
        .mig = DEVICE_NO_MIG,
    };
    struct device_finding *found;

    if (!drm_is_reachable(context->root, drm)) {
        if (machine_report_add_problem(
                &findings->problems, vendor_name(table->vendor),
                "%s: left out, because its device file /dev/dri/%s is missing here", drm->path,
                drm->render) < 0)
            return error_set_memory(error);
        return 0;
    }
    if (id.index > DEVICE_INDEX_MAX)
        return error_set(error, BERTH_ERROR_LIMIT, "expected at most %d devices, got more",
                         DEVICE_INDEX_MAX + 1);
    found = add_found(&findings->found, id, drm->path);
    if (found == NULL)
        return error_set_memory(error);
    found->device->pci = drm->pci;
    return 0;
}

int drm_gpu_list(const struct vendor_context *context, const struct vendor_table *table,
                 struct findings *findings, struct berth_error *error)
{
    struct drm_list list = {0};
    int code = drm_list_claimed(context->root, table, &list, error);

    for (size_t i = 0; code == 0 && i < list.count; i++)
        code = add_listed(context, table, &list.items[i], findings, error);
    drm_list_finish(&list);
    return code;
}

int drm_gpu_start_read(const struct vendor_context *context, const struct device_finding *wanted,
                       struct findings *findings, struct device **ret_device,
                       struct drm_device *ret_drm, struct berth_error *error)
{
    const struct sysroot *root = context->root;
    const char *path = wanted->key;
    struct drm_device drm;
    struct device_finding *found;
    int code;

    if (!sysroot_has(root, "%s", path))
        return error_set(error, BERTH_ERROR_NOT_FOUND, "cannot read %s: no such directory", path);
    code = drm_device_at(root, path, &drm, error);
    if (code < 0)
        return code;
    found = add_found(&findings->found, wanted->device->id, path);
    if (found == NULL)
        code = error_set_memory(error);
    if (code == 0)
        code = drm_nodes(root, &drm, &found->device->nodes, error);
    if (code == 0)
        code = locality_read(root, path, found->device, error);
    if (code < 0) {
        drm_device_finish(&drm);
        return code;
    }
    found->device->pci = drm.pci;
    found->device->asleep = locality_is_asleep(root, path);
    *ret_device = found->device;
    *ret_drm = drm;
    return 0;
}

char *drm_gpu_compatible(const struct sysroot *root, const char *path, const char *prefix,
                         bool or_first)
{
    struct text inert = {0};
    struct sysroot_value list;
    const char *found = NULL;

    if (sysroot_read(root, &list, "%s/of_node/compatible", path) != 0 || list.length == 0)
        return NULL;
    if (or_first)
        found = list.text;
    /* Each string ends with a zero byte; sysroot_read() adds the last one. */
    for (size_t at = 0; at < list.length; at += strlen(list.text + at) + 1)
        if (strncmp(list.text + at, prefix, strlen(prefix)) == 0) {
            found = list.text + at;
            break;
        }
    if (found == NULL || *found == '\0')
        return NULL;
    utf8_append_inert(&inert, found);
    return text_detach(&inert);
}
