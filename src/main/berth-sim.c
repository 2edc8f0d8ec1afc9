/* SPDX-License-Identifier: Apache-2.0
 *
 * berth-sim: replays traces through the engine. 'berth sim' becomes this program.
 */
#include "cli/programs/sim_options.h"
#include "cli/subcommands.h"

int main(int argc, char **argv)
{
    int exit_code;
    const struct verb *word = subcommand_find(&verb_sim, argc, argv, &exit_code);

    if (word == NULL)
        return exit_code;
    return word == &verb_sim_place ? sim_place_run(argc - 1, argv + 1)
                                   : sim_queue_run(argc - 1, argv + 1);
}
