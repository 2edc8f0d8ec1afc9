/* SPDX-License-Identifier: Apache-2.0
 *
 * Chooses the TCP port where the ranks of a job meet (MASTER_PORT). A rank listens there some time
 * later. Until then an abstract socket, berth/port/NUMBER, reserves the port among the runs of
 * berth in this network namespace.
 */
#ifndef LAUNCH_MASTER_PORT_H
#define LAUNCH_MASTER_PORT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>

/* The default of torch. */
#define MASTER_PORT_DEFAULT 29500

struct master_port {
    uint16_t number;
    bool is_taken; /* in use by another process; only possible for a port that the user chose */
    bool has_name; /* this run holds the abstract socket */
    int name;      /* the abstract socket */
};

/* Chooses the wanted port; with 0, the default port or, if that is in use, a free one. Fails with
 * BERTH_ERROR_LIMIT if no port is free; *ret_port is untouched then. The caller finishes the port
 * after the last rank has ended. */
int master_port_choose(uint16_t wanted, struct master_port *ret_port, struct berth_error *error);
void master_port_finish(struct master_port *port);

#endif
