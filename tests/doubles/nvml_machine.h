/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine of the NVML double: NVML_DOUBLE names a text file, which is read again whenever it
 * changes. One statement per line, with blanks between words; # begins a comment line. Blanks at
 * the beginning of a line are ignored. Facts without a statement are not supported.
 *
 *     driver 550.163.01          # the result of nvmlSystemGetDriverVersion
 *     init 9                     # the status of the init calls
 *     count 4000000000           # the result of nvmlDeviceGetCount_v2, instead of the true one
 *     topology 0 1 20            # level of the common ancestor of two GPUs
 *     topology 50                # the same for all other pairs
 *     call FUNCTION return 3     # the status of a function for all devices
 *     gpu                        # the next GPU; the next statements describe it
 *       name NVIDIA T4           # to the end of the line; \xff is that byte
 *       uuid GPU-0000            # also serial
 *       pci 00000000:07:00.0 0x20b010de 0x134710de
 *       minor 0
 *       memory 100 60 5          # total, free, reserved; also bar1
 *       utilization 50 20        # GPU, memory
 *       ... see `facts` in nvml_machine.c
 *       lane 0 active switch 0000:01:00.0   # or inactive; gpu, npu, switch, unknown; or -
 *       process compute 4711 1024 [1 0]     # or graphics, mps; memory may be -; instances
 *       processes compute 5000   # this many, with pids from 1000
 *       call FUNCTION return 15  # or hang, crash, lie: for this GPU only
 *       instance 3               # a MIG instance with this number; the next statements describe it
 */
#ifndef TESTS_NVML_MACHINE_H
#define TESTS_NVML_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/nvidia/nvml.h"

#define MACHINE_GPUS      128
#define MACHINE_INSTANCES 8
#define MACHINE_LANES     18
#define MACHINE_FAULTS    32
#define MACHINE_PROCESSES 64
#define MACHINE_VALUES    4

enum fact_name {
    FACT_MINOR,
    FACT_MEMORY,
    FACT_BAR1,
    FACT_UTILIZATION,
    FACT_TEMPERATURE,
    FACT_POWER,
    FACT_POWER_LIMIT,
    FACT_CLOCKS,
    FACT_MAX_CLOCKS,
    FACT_CAPABILITY,
    FACT_ECC,
    FACT_REMAPPED,
    FACT_RETIRED_PENDING,
    FACT_MIG,
    FACT_MIG_MAX,
    FACT_GPU_INSTANCE,
    FACT_COMPUTE_INSTANCE,
    FACT_PCIE,
    FACT_FAN,
    FACT_NVLINK_VERSION,
    FACT_ARCHITECTURE,
    FACTS,
};

struct fact {
    bool known;
    int64_t values[MACHINE_VALUES];
};

enum action { ACTION_NONE, ACTION_RETURN, ACTION_HANG, ACTION_CRASH, ACTION_LIE };

struct fault {
    char function[64];
    enum action action;
    int code;
};

struct fault_list {
    struct fault items[MACHINE_FAULTS];
    unsigned count;
};

struct lane {
    bool known;
    bool active;
    int type;
    struct nvml_pci_info remote;
};

enum process_kind { PROCESS_COMPUTE, PROCESS_GRAPHICS, PROCESS_MPS, PROCESS_KINDS };

struct process {
    enum process_kind kind;
    struct nvml_process_wide info;
};

/* A GPU or an instance. */
struct unit {
    bool known;
    char name[NVML_NAME_SIZE];
    char uuid[NVML_UUID_SIZE];
    char serial[32];
    struct nvml_pci_info pci;
    struct fact facts[FACTS];
    struct fault_list faults;
    struct lane lanes[MACHINE_LANES];
    struct process processes[MACHINE_PROCESSES];
    unsigned processes_count;
    unsigned made_up[PROCESS_KINDS]; /* number of processes that have only a count */
};

struct machine {
    char driver[80];
    int init;
    bool count_said;
    unsigned count_lie;
    unsigned gpus_count;
    struct unit gpus[MACHINE_GPUS];
    struct unit instances[MACHINE_GPUS][MACHINE_INSTANCES];
    struct fault_list faults;
    int level; /* of all pairs without their own statement; -1: not supported */
    int levels[MACHINE_GPUS][MACHINE_GPUS];
};

/* Parses a PCI address, domain:bus:device.function in hexadecimal, into the numbers of ret_info;
 * its texts stay unset. Returns whether the text is an address. */
bool machine_parse_pci(const char *text, struct nvml_pci_info *ret_info);

/* Returns the machine as the file describes it now. An invalid file ends the program with a
 * message. */
struct machine *machine_now(void);

#endif
