/* SPDX-License-Identifier: Apache-2.0
 *
 * What the OpenCL double tells of: OPENCL_DOUBLE names a text file, read again whenever it changed.
 * Handles are places in it, so they outlast a change. One statement a line, # begins a comment
 * line; what is not said is not supported.
 *
 *     call clCreateContext -5         # what a function returns; 0: it has done nothing
 *     platforms 4000000000            # how many there are said to be, instead of the truth
 *     platform                        # the next one; what follows is about it
 *     name NVIDIA CUDA                # and so vendor; to the end of the line
 *     unterminated                    # its texts have no zero at the end
 *     fails -6                        # what clGetDeviceIDs says of it
 *     devices 4000000000              # how many it is said to have
 *     device gpu                      # the next one; gpu, cpu or accelerator
 *     shown-as gpu                    # as what it is listed, instead
 *     again                           # it is listed once more
 *     khronos 0 7 0 0                 # domain, bus, device, function; in decimal
 *     nvidia 7 0 1                    # bus, slot and, or not, domain
 *     amd 7 0 0                       # bus, device, function
 *     uuid 00112233445566778899aabbccddeeff
 *     memory 1000                     # bytes
 *     free 12 3                       # KiB, and or not, the largest piece
 *     units 8
 *     splits 2                        # into how many it is said to have been split, instead
 *     unavailable                     # and so unsplittable
 *     size 0x106a 15                  # how large it says that this fact is
 */
#ifndef TESTS_OPENCL_MACHINE_H
#define TESTS_OPENCL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "context/opencl.h"

enum { PLATFORMS = 4, DEVICES = 8, CALLS = 8 };

struct fact {
    unsigned count; /* of numbers that were said */
    unsigned long long numbers[4];
};

struct opencl_device_handle {
    unsigned long long type;
    unsigned long long shown_as;
    bool is_twice;
    struct fact khronos;
    struct fact nvidia;
    struct fact amd;
    struct fact memory;
    struct fact free;
    struct fact units;
    struct fact splits;
    struct fact size;
    uint8_t uuid[OPENCL_UUID_SIZE];
    bool has_uuid;
    bool is_unavailable;
    bool is_unsplittable;
};

struct opencl_platform_handle {
    char name[128];
    char vendor[128];
    bool is_unterminated;
    struct fact fails;
    struct fact devices_said;
    unsigned count;
    struct opencl_device_handle devices[DEVICES];
};

extern struct opencl_platform_handle platforms[PLATFORMS];
extern unsigned platforms_count;
extern struct fact platforms_said;

/* What every call begins with: reads the file if it changed; one that says nonsense ends the
 * program, loudly. Returns whether the function has its own answer, by the file. */
bool machine_tells(const char *function, int32_t *ret_status);

#endif
