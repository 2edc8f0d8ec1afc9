/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine of the OpenCL double: OPENCL_DOUBLE names a text file, which is read again whenever
 * it changes. Handles are positions in it, so they stay valid. One statement per line; # begins a
 * comment line. Facts without a statement are not supported.
 *
 *     call clCreateContext -5         # the function does nothing and returns this status
 *     platforms 4000000000            # the reported number, instead of the true one
 *     platform                        # the next platform; the next statements describe it
 *     name NVIDIA CUDA                # to the end of the line; also vendor
 *     unterminated                    # its texts have no zero at the end
 *     fails -6                        # the status of clGetDeviceIDs
 *     devices 4000000000              # the reported number of devices
 *     device gpu                      # the next device: gpu, cpu or accelerator
 *     shown-as gpu                    # lists show the device with this type instead
 *     again                           # lists show the device twice
 *     khronos 0 7 0 0                 # domain, bus, device, function; in decimal
 *     nvidia 7 0 1                    # bus, slot and optional domain
 *     amd 7 0 0                       # bus, device, function
 *     uuid 00112233445566778899aabbccddeeff
 *     memory 1000                     # bytes
 *     free 12 3                       # KiB, and optionally the largest block
 *     units 8
 *     splits 2                        # the reported number of parts, instead of the true one
 *     unavailable                     # also unsplittable
 *     size 0x106a 15                  # the reported size of this fact
 */
#ifndef TESTS_OPENCL_MACHINE_H
#define TESTS_OPENCL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "context/opencl.h"

enum { PLATFORMS = 4, DEVICES = 8, CALLS = 8 };

struct fact {
    unsigned count; /* numbers in the statement */
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

/* Begins a call. Reads the file if it has changed; an invalid file ends the program with a message.
 * Returns whether the file has a status for the function. */
bool machine_tells(const char *function, int32_t *ret_status);

#endif
