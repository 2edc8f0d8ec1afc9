/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking a look at the hardware into the engine.
 */
#ifndef ENGINE_ENGINE_REPORT_H
#define ENGINE_ENGINE_REPORT_H

#include "engine/engine.h"
#include "model/machine_report.h"

/* What a report changed of a device; bits. */
enum device_change {
    DEVICE_ADDED = 1 << 0, /* it has a slot for the first time */
    DEVICE_BACK = 1 << 1,  /* it was gone */
    DEVICE_GONE = 1 << 2,
    DEVICE_FACTS = 1 << 3,  /* what else is known of it */
    DEVICE_HEALTH = 1 << 4, /* sick, for another reason, or well again */
};

struct report_handler {
    /* No device gets a slot, and facts stay as they were: they only go, come back, fall ill and
     * have loads. */
    bool fixed;
    /* Told of each device that changed, in a pause of the engine; it must not ask it to decide. */
    void (*changed)(void *context, uint32_t slot, unsigned changes);
    void *context;
};

/* Takes a report in. Devices that are new get a slot, those that are known new facts, loads, health
 * and the rest, and links those of the same pairs. One that is missing is gone if its vendor was
 * listed, else what is known of it is old. Of one that is old itself only its health is news. An id
 * that has come to mean another device (by UUID, else by PCI address) is gone while a lease is on
 * either. All that is between engine_pause and engine_resume, which are the caller's. The report is
 * empty afterwards. Fails with BERTH_ERROR_LIMIT (no room for a device) or _MEMORY, with all others
 * taken in. */
int engine_apply_report(struct engine *engine, struct machine_report *report,
                        const struct report_handler *handler, struct berth_error *error);

/* Nobody answers: what is known of all devices is old. */
void engine_mark_devices_old(struct engine *engine);

#endif
