/* SPDX-License-Identifier: Apache-2.0
 *
 * Verbs that do one thing to devices of the pool: to all that are named in one step, or to none.
 */
#ifndef CLI_DEVICES_DEVICE_VERBS_H
#define CLI_DEVICES_DEVICE_VERBS_H

#include "cli/verbs.h"
#include "view/pool_view.h"
#include "view/user_names.h"

/* What a device verb was told, but for the devices. */
struct device_action {
    enum wire_type type;   /* of the question, whose answer is WIRE_DONE */
    const char *reason;    /* for people; NULL: none */
    const char *inventory; /* of --inventory */
};

/* Does it to the devices that argv names from `first` on, each word one id or several with commas
 * between, and prints how each stands afterwards. Returns the exit code: EXIT_USAGE for a word that
 * is no id, EXIT_BERTH when the pool refused. */
int device_verb_run(const struct verb *verb, const struct device_action *action, int argc,
                    char **argv, int first);

/* Appends how a device stands: "nvidia3: out of service once lease 12 (alice) ends\n". */
void device_verb_describe(const struct pool_view *view, struct device_id id,
                          struct user_names *users, struct text *out);

#endif
