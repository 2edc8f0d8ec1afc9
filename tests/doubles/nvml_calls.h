/* SPDX-License-Identifier: Apache-2.0
 *
 * What all functions of the NVML double begin with.
 */
#ifndef TESTS_NVML_CALLS_H
#define TESTS_NVML_CALLS_H

#include "doubles/nvml_machine.h"

/* Whom a client knows by these; nobody else calls them, so there is no header with prototypes. */
#define EXPORTED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* A call that has begun. */
struct call {
    struct machine *machine;
    struct unit *unit; /* the GPU or instance it is about; NULL: none */
    unsigned gpu;      /* the GPU's place */
    bool is_instance;
    bool lies; /* the answer shall be one that cannot be */
};

/* Begins a call that is about no device: writes it into the log, does what the file wants of it.
 * Returns NVML_SUCCESS, or what the function is to return. */
int call_begin(const char *function, struct call *ret_call);

/* The same for a device. */
int call_begin_device(const char *function, nvml_device device, struct call *ret_call);

/* Fills in whom the handle names on the call's machine. Returns whether it names anybody. */
bool call_find_unit(nvml_device device, struct call *call);

/* The handle of a GPU or of an instance of it (-1: the GPU). */
nvml_device call_handle(unsigned gpu, int instance);

/* Writes that the GPU was attached to, which would wake it, unless that was so before. */
void call_attach(unsigned gpu);

/* A call about a device that gives numbers of one fact: pointers in their order, NULL leaves one
 * out. */
int call_fact(const char *function, nvml_device device, enum fact_name name,
              unsigned *const *numbers, unsigned count);

#endif
