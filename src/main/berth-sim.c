/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-sim: traces through the engine. 'berth sim' becomes this program.
 */
#include "cli/words.h"
#include "main/sim_verbs.h"

static const struct verb *const words[] = {
    &verb_sim_place,
    &verb_sim_queue,
    NULL,
};

int main(int argc, char **argv)
{
    return words_run(&verb_sim, words, argc, argv);
}
