/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of berth daemon: here, so that help and completion know them; what they do is in
 * berthd, a program of its own.
 */
#ifndef CLI_PROGRAMS_DAEMON_OPTIONS_H
#define CLI_PROGRAMS_DAEMON_OPTIONS_H

#include "model/optional.h"
#include "spec/option.h"

#define MACHINE_SOCKET "/run/berth/berth.sock"
#define MACHINE_RULES  "/etc/berth/berth.yaml"

struct daemon_options {
    const char *socket;
    const char *own;
    const char *inventory;
    const char *configuration;
    const char *log;
    const char *user;
    struct optional_number idle;
    bool check;
};

extern const struct option_set daemon_option_set;

#endif
