/* SPDX-License-Identifier: Apache-2.0
 *
 * Applies reports about the hardware to the engine.
 */
#ifndef ENGINE_ENGINE_REPORT_H
#define ENGINE_ENGINE_REPORT_H

#include "engine/engine.h"
#include "model/machine/machine_report.h"

/* The changes of a device by a report; bits. */
enum device_change {
    DEVICE_ADDED = 1 << 0, /* it got its first slot */
    DEVICE_BACK = 1 << 1,  /* it was gone and is present again */
    DEVICE_GONE = 1 << 2,
    DEVICE_FACTS = 1 << 3,  /* other facts about it changed */
    DEVICE_HEALTH = 1 << 4, /* it became sick, sick for another reason, or well again */
};

struct report_handler {
    /* The set of devices is fixed: no device is added and no facts change. Devices still go, come
     * back, become sick and have loads. */
    bool fixed;
    /* Called for each device that changed, during a pause of the engine. It must not make claims or
     * resume the engine. */
    void (*changed)(void *context, uint32_t slot, unsigned changes);
    void *context;
};

/* Applies a report. A new device gets a slot. A known device gets new facts, loads and health, and
 * the links of its pairs are replaced. A device that is missing is gone if the report lists its
 * vendor; otherwise its facts become old. For a device that is old in the report, only the health
 * counts. If an id now means another device (by UUID, else by PCI address), the id counts as gone
 * while there is a lease on either device. The caller calls engine_pause() before and
 * engine_resume() after. The report is empty afterwards. Fails with BERTH_ERROR_LIMIT (no slot for
 * a device) or _MEMORY; all other devices are applied. */
int engine_apply_report(struct engine *engine, struct machine_report *report,
                        const struct report_handler *handler, struct berth_error *error);

/* Marks the facts about all devices as old, because the hardware does not answer. */
void engine_mark_devices_old(struct engine *engine);

#endif
