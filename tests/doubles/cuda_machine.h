/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine of the CUDA double: a text file with one statement per line. Blanks at the beginning
 * of a line are ignored; # begins a comment line. Statements after `gpu` or `instance` are about
 * it:
 *
 *     version 12040                # the result of cuDriverGetVersion
 *     init 803                     # the status of cuInit
 *     many-instances               # CUDA shows all MIG instances beside whole GPUs
 *     gpu                          # the next GPU
 *       uuid GPU-8932f937-d72c-4106-c12f-20bd9faed9f6
 *       pci 0000:07:00.0
 *       name NVIDIA T4             # to the end of the line
 *       memory 100 60              # total, free
 *       speed 5                    # a larger number is faster; 0 by default
 *       instance 1 0               # a MIG instance of the GPU: GPU instance, compute instance
 *         uuid MIG-...
 *         memory 50 20
 */
#ifndef TESTS_CUDA_MACHINE_H
#define TESTS_CUDA_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_UNITS 64

struct machine_unit {
    bool is_instance;
    unsigned gpu; /* the unit of its GPU; its own for a GPU */
    bool has_instances;
    char uuid[48];
    uint32_t pci[4]; /* domain, bus, device, function */
    char name[96];
    uint64_t total;
    uint64_t free;
    unsigned speed;
    unsigned gpu_instance;
    unsigned compute_instance;
};

struct machine {
    int version;
    int init;
    bool many_instances;
    unsigned count;
    struct machine_unit units[MACHINE_UNITS];
    unsigned shown;                /* number of units that CUDA shows */
    unsigned order[MACHINE_UNITS]; /* these units, in CUDA's order */
};

/* Reads the file, and the variables of cuda_visible.h. An invalid file ends the program with a
 * message. */
void machine_read(struct machine *ret_machine);

/* Gets the 16 bytes of a UUID's text, after GPU- or MIG-. */
void machine_uuid(const struct machine_unit *unit, unsigned char *ret_bytes);

#endif
