/* SPDX-License-Identifier: Apache-2.0
 *
 * The program that a self-test runs under a lease: it lists the devices that the vendor's library
 * shows within the lease, creates a context on the leased device, and holds it. It writes lines:
 *
 *     visible nvidia0            # for each device of the machine that the library shows
 *     nothing libcuda.so.1: ...  # instead, if the leased device's library cannot list devices
 *     context                    # the context exists; or:
 *     failed cannot create ...   # it does not
 *     ready 4711 12              # its pid and its lease
 *
 * Then it waits until its input ends.
 */
#ifndef CLI_DOCTOR_DOCTOR_HOLDER_H
#define CLI_DOCTOR_DOCTOR_HOLDER_H

#include <berth/error.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/string_list.h"
#include "base/text/text.h"
#include "model/machine/device.h"

/* Runs that program in this process. Returns the exit code. */
int doctor_holder_run(void);

/* A holder that this process has started, and the lines that it wrote. */
struct doctor_holder {
    pid_t child;
    int input;  /* its standard input */
    int output; /* its standard output and error */
    struct text lines;
    size_t handled; /* bytes of them */
    struct string_list visible;
    char *nothing; /* the reason why no devices were listed; NULL: they were */
    char *failed;  /* the reason why there is no context; NULL: there is one */
    pid_t pid;
    uint64_t lease;
};

/* Starts `berth run` with the program on a device, and waits until it is ready. Fails with
 * BERTH_ERROR_BUSY (the device was not granted) or _IO and the last line of its output, or with
 * BERTH_ERROR_MEMORY. The caller finishes
 * the holder, also on failure. */
int doctor_holder_start(struct doctor_holder *holder, struct device_id device,
                        struct berth_error *error);

/* Returns whether the vendor's library showed the device within the lease. */
bool doctor_holder_shows(const struct doctor_holder *holder, struct device_id device);

/* Ends the holder, waits for its end, and frees what it owns. */
void doctor_holder_finish(struct doctor_holder *holder);

#endif
