/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the devices of the enclosing lease as options for `podman run` and `docker run`.
 */
#ifndef CLI_DEVICES_CDI_ARGUMENTS_H
#define CLI_DEVICES_CDI_ARGUMENTS_H

#include <berth/error.h>

#include "base/text/choice.h"
#include "base/text/text.h"

/* How the options name the devices. */
enum cdi_arguments {
    CDI_ARGUMENTS_UNSAID, /* --arguments was not given */
    CDI_ARGUMENTS_CDI,    /* by CDI names */
    CDI_ARGUMENTS_NODES,  /* by device files */
};

extern const struct choice cdi_arguments_names[];

/* Appends the options, one per line: a --device for each device or device file of the lease in the
 * environment, the options that MPS needs, and an --env for each variable of the lease. A value
 * with characters that are special to a shell is left out: the runtime then takes it from its own
 * environment. Fails with BERTH_ERROR_INVALID if there is no lease, or if a device's name has such
 * characters, or with BERTH_ERROR_MEMORY. */
int cdi_arguments_write(enum cdi_arguments how, struct text *out, struct berth_error *error);

#endif
