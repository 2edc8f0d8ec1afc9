/* SPDX-License-Identifier: Apache-2.0
 *
 * The lease that berth was started within, as options of podman run and docker run.
 */
#ifndef CLI_DEVICES_CDI_ARGUMENTS_H
#define CLI_DEVICES_CDI_ARGUMENTS_H

#include <berth/error.h>

#include "base/text/choice.h"
#include "base/text/text.h"

/* How a container is told which devices it gets. */
enum cdi_arguments {
    CDI_ARGUMENTS_UNSAID,
    CDI_ARGUMENTS_CDI,   /* by CDI names */
    CDI_ARGUMENTS_NODES, /* by device files */
};

extern const struct choice cdi_arguments_names[];

/* Appends the options, one a line: a --device for each device, or device file, of the lease that
 * the environment tells of, what MPS needs where it is shared so, and an --env for each variable
 * that goes with it. A value that a shell would take apart is not written out: the runtime then
 * takes it from its own environment. Fails with BERTH_ERROR_INVALID when there is no lease, or a
 * device that cannot be told, or _MEMORY. */
int cdi_arguments_write(enum cdi_arguments how, struct text *out, struct berth_error *error);

#endif
