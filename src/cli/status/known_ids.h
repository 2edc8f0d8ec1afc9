/* SPDX-License-Identifier: Apache-2.0
 *
 * The ids that somebody who types a command may mean, for the completions of shells. They are asked
 * for in passing, between two keys: no daemon is started, nobody is waited for, nothing is said of
 * what fails.
 */
#ifndef CLI_STATUS_KNOWN_IDS_H
#define CLI_STATUS_KNOWN_IDS_H

#include "base/text/choice.h"

enum known_ids {
    KNOWN_IDS_NONE,
    KNOWN_IDS_CLAIMS,
    KNOWN_IDS_DEVICES,
    KNOWN_IDS_JOBS, /* leases and claims */
    KNOWN_IDS_LEASES,
};

extern const struct choice known_ids_names[];

/* Prints a line for each id: the id, a tab and a word about it. Leases and claims are those of the
 * user, all of them for root. `inventory` is --inventory's, NULL: none was given. Returns the exit
 * code. */
int known_ids_print(enum known_ids which, const char *inventory);

#endif
