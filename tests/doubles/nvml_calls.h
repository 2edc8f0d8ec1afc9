/* SPDX-License-Identifier: Apache-2.0
 *
 * The common beginning of the NVML double's functions.
 */
#ifndef TESTS_NVML_CALLS_H
#define TESTS_NVML_CALLS_H

#include "doubles/nvml_machine.h"

/* Clients know the functions by these names. They have no header with prototypes, because no other
 * code calls them. */
#define EXPORTED __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* A call that has begun. */
struct call {
    struct machine *machine;
    struct unit *unit; /* the GPU or instance that it is about; NULL: none */
    unsigned gpu;      /* the GPU's position */
    bool is_instance;
    bool lies; /* the answer must be impossible */
};

/* Begins a call that is about no device: logs it and applies the file's faults. Returns
 * NVML_SUCCESS, or the status that the function must return. */
int call_begin(const char *function, struct call *ret_call);

/* The same for a device. */
int call_begin_device(const char *function, nvml_device device, struct call *ret_call);

/* Fills in the unit of the handle on the call's machine. Returns whether there is one. */
bool call_find_unit(nvml_device device, struct call *call);

/* Returns the handle of a GPU or of its instance (-1: the GPU). */
nvml_device call_handle(unsigned gpu, int instance);

/* Logs that the GPU was attached, which would wake it, unless it was attached before. */
void call_attach(unsigned gpu);

/* Makes a call about a device that returns the numbers of one fact, in their order. A NULL pointer
 * among `numbers` is an invalid argument. */
int call_fact(const char *function, nvml_device device, enum fact_name name,
              unsigned *const *numbers, unsigned count);

#endif
