/* SPDX-License-Identifier: Apache-2.0
 *
 * Prints ids for shell completion. Completion runs between two key presses: it starts no daemon,
 * gives up early, and prints no errors.
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

/* Prints a line for each id: the id, a tab, and its name or command. Leases and claims are those of
 * the user; root gets all of them. `inventory` is the value of --inventory; NULL: none. Blocks for
 * about two seconds at most. Returns the exit code. */
int known_ids_print(enum known_ids which, const char *inventory);

#endif
