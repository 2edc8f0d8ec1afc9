/* SPDX-License-Identifier: Apache-2.0
 *
 * The words that follow berth sim, one file each.
 */
#ifndef MAIN_SIM_VERBS_H
#define MAIN_SIM_VERBS_H

#include "cli/verbs.h"

extern const struct verb verb_sim_place;
extern const struct verb verb_sim_queue;

#endif
