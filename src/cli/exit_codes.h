/* SPDX-License-Identifier: Apache-2.0
 *
 * What berth's exit codes mean.
 */
#ifndef CLI_EXIT_CODES_H
#define CLI_EXIT_CODES_H

enum {
    EXIT_GOOD = 0,
    EXIT_USAGE = 2,        /* wrong usage, or a file that does not hold what it should */
    EXIT_IMPOSSIBLE = 120, /* no device here could ever satisfy the request */
    EXIT_BERTH = 125,      /* berth itself failed */
};

#endif
