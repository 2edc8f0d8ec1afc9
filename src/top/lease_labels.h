/* SPDX-License-Identifier: Apache-2.0
 *
 * Short labels of leases. The text remembers a failed allocation.
 */
#ifndef TOP_LEASE_LABELS_H
#define TOP_LEASE_LABELS_H

#include "base/text/text.h"
#include "model/pool_info.h"

/* Appends devices as "nvidia0,nvidia1"; three and more in a row as "nvidia0-7". */
void lease_label_append_devices(struct text *out, const struct device_id_list *devices);

/* Returns the name of the lease, or else its command. */
const char *lease_label_job(const struct lease_info *lease);

#endif
