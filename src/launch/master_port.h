/* SPDX-License-Identifier: Apache-2.0
 *
 * The TCP port where the ranks of a job meet. It is one of them that will listen there, a while
 * after it was chosen; until then an abstract socket name, berth/port/NUMBER, tells other runs of
 * berth on this network that the port has its user.
 */
#ifndef LAUNCH_MASTER_PORT_H
#define LAUNCH_MASTER_PORT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

/* What torch programs expect. */
#define MASTER_PORT_DEFAULT 29500

struct master_port {
    uint16_t number;
    bool is_taken; /* by somebody else; only a port that was asked for can be */
    bool has_name; /* else another run has it */
    int name;      /* the socket that holds it */
};

/* The port that is wanted; with 0 the default one or, when that is taken, a free one. Fails with
 * BERTH_ERROR_LIMIT when none is to be had; *ret_port is untouched then. The caller finishes it
 * when the last rank has ended. */
int master_port_choose(uint16_t wanted, struct master_port *ret_port, struct berth_error *error);
void master_port_finish(struct master_port *port);

#endif
