/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/device_tags.h"

#include "base/count.h"
#include "model/machine/device.h"
#include "model/machine/link.h"
#include "model/machine/machine_report.h"

_Static_assert(HEALTH_UNKNOWN == 0 && HEALTH_OK == 1 && HEALTH_SICK == 2,
               "kinds of health are part of the format");

_Static_assert(DEVICE_KIND_UNKNOWN == 0 && DEVICE_KIND_INTEGRATED == 1 && DEVICE_KIND_DISCRETE == 2,
               "kinds of devices are part of the format");
_Static_assert(LINK_NVLINK == 0 && LINK_XGMI == 1 && LINK_PSB == 2 && LINK_SYS == 7,
               "kinds of links are part of the format");

static const struct tagged_field process_fields[] = {
    [PROCESS_TAG_PID] = {TAGGED_NUMBER(device_process, pid, UINT64_MAX), .required = true},
    [PROCESS_TAG_UID] = {TAGGED_MEMBER(device_process, uid, maybe), .max = UINT32_MAX},
    [PROCESS_TAG_MEMORY] = {TAGGED_MEMBER(device_process, memory, maybe), .max = UINT64_MAX},
    [PROCESS_TAG_COMMAND] = {TAGGED_MEMBER(device_process, command, words),
                             .max = PROCESS_TEXT_MAX},
    [PROCESS_TAG_CONTAINER] = {TAGGED_MEMBER(device_process, container, words),
                               .max = PROCESS_TEXT_MAX},
    [PROCESS_TAG_LEASE] = {TAGGED_NUMBER(device_process, lease, UINT64_MAX)},
    [PROCESS_TAG_STARTED] = {TAGGED_NUMBER(device_process, started, INT64_MAX)},
    [PROCESS_TAG_DRAWS] = {TAGGED_NUMBER(device_process, draws, true)},
    [PROCESS_TAG_SQUATS] = {TAGGED_NUMBER(device_process, squats, true)},
    [PROCESS_TAG_SAID_LEASE] = {TAGGED_NUMBER(device_process, said_lease, UINT64_MAX)},
    [PROCESS_TAG_SAID_SOCKET] = {TAGGED_MEMBER(device_process, said_socket, text),
                                 .max = PROCESS_TEXT_MAX},
    [PROCESS_TAG_OWNER] = {TAGGED_MEMBER(device_process, owner, maybe), .max = UINT32_MAX},
    [PROCESS_TAG_UNDECIDED] = {TAGGED_NUMBER(device_process, undecided, true)},
    [PROCESS_TAG_ANCESTORS] = {TAGGED_MEMBER(device_process, ancestors, list),
                               TAGGED_COUNTED_BY(device_process, ancestor_count),
                               .max = DEVICE_ANCESTORS_MAX},
};

static const struct tagged_table process_tagged = TAGGED_TABLE(device_process, process_fields);

static const struct tagged_field link_fields[] = {
    [LINK_TAG_ONE] = {TAGGED_NUMBER(link, between[0], UINT32_MAX)},
    [LINK_TAG_OTHER] = {TAGGED_NUMBER(link, between[1], UINT32_MAX)},
    [LINK_TAG_KIND] = {TAGGED_NUMBER(link, kind, LINK_SYS)},
    [LINK_TAG_LANES] = {TAGGED_NUMBER(link, lanes, UINT32_MAX)},
};

const struct tagged_table link_tagged = TAGGED_TABLE(link, link_fields);

static const struct tagged_field problem_fields[] = {
    [PROBLEM_TAG_BACKEND] = {TAGGED_MEMBER(problem, backend, words), .max = PROCESS_TEXT_MAX,
                             .required = true},
    [PROBLEM_TAG_MESSAGE] = {TAGGED_MEMBER(problem, message, words), .max = PROCESS_TEXT_MAX,
                             .required = true},
};

const struct tagged_table problem_tagged = TAGGED_TABLE(problem, problem_fields);

static const struct tagged_field device_fields[] = {
    [DEVICE_TAG_ID] = {TAGGED_MEMBER(device, id, id), .required = true},
    [DEVICE_TAG_NAME] = {TAGGED_MEMBER(device, name, text), .max = DEVICE_TEXT_MAX},
    [DEVICE_TAG_UUID] = {TAGGED_MEMBER(device, uuid, text), .max = DEVICE_TEXT_MAX},
    [DEVICE_TAG_PARENT] = {TAGGED_MEMBER(device, parent, text), .max = DEVICE_TEXT_MAX},
    [DEVICE_TAG_CPUS] = {TAGGED_MEMBER(device, cpus, text), .max = DEVICE_TEXT_MAX},
    [DEVICE_TAG_PCI] = {TAGGED_MEMBER(device, pci, pci)},
    [DEVICE_TAG_MEMORY_TOTAL] = {TAGGED_MEMBER(device, memory_total, maybe), .max = UINT64_MAX},
    [DEVICE_TAG_NUMA] = {TAGGED_MEMBER(device, numa, maybe), .max = UINT64_MAX},
    [DEVICE_TAG_MINOR] = {TAGGED_MEMBER(device, minor, maybe), .max = UINT64_MAX},
    [DEVICE_TAG_CAP] = {TAGGED_MEMBER(device, cap, capability), .max = UINT32_MAX},
    [DEVICE_TAG_HEALTH] = {TAGGED_NUMBER(device, health, UINT32_MAX)},
    [DEVICE_TAG_PARTITIONED] = {TAGGED_NUMBER(device, partitioned, true)},
    [DEVICE_TAG_NODES] = {TAGGED_MEMBER(device, nodes, strings), .max = DEVICE_NODES_MAX},
    [DEVICE_TAG_MEMORY_FREE] = {TAGGED_MEMBER(device, load.memory_free, figure)},
    [DEVICE_TAG_UTILIZATION] = {TAGGED_MEMBER(device, load.utilization, figure)},
    [DEVICE_TAG_TEMPERATURE] = {TAGGED_MEMBER(device, load.temperature, figure)},
    [DEVICE_TAG_POWER] = {TAGGED_MEMBER(device, load.power, figure)},
    [DEVICE_TAG_HEALTH_REASON] = {TAGGED_MEMBER(device, health_reason, words),
                                  .max = PROCESS_TEXT_MAX},
    [DEVICE_TAG_ASLEEP] = {TAGGED_NUMBER(device, asleep, true)},
    [DEVICE_TAG_OLD] = {TAGGED_NUMBER(device, old, true)},
    [DEVICE_TAG_KIND] = {TAGGED_NUMBER(device, kind, UINT32_MAX)},
    [DEVICE_TAG_FREQUENCY] = {TAGGED_MEMBER(device, load.frequency, figure)},
    [DEVICE_TAG_PROCESSES] = {TAGGED_MEMBER(device, processes, items), .max = DEVICE_PROCESSES_MAX,
                              .inner = &process_tagged},
    [DEVICE_TAG_TILES] = {TAGGED_MEMBER(device, tiles, maybe), .max = UINT32_MAX},
    [DEVICE_TAG_ORDINAL] = {TAGGED_MEMBER(device, ordinal, maybe), .max = UINT32_MAX},
    [DEVICE_TAG_FIRST_TILE] = {TAGGED_MEMBER(device, first_tile, maybe), .max = UINT32_MAX},
    [DEVICE_TAG_MEMORY_IDLE] = {TAGGED_MEMBER(device, memory_idle, maybe), .max = UINT64_MAX},
    [DEVICE_TAG_HIDES_PROCESSES] = {TAGGED_NUMBER(device, hides_processes, true)},
};
_Static_assert(COUNT(device_fields) <= 64, "tags seen are bits of 64");

const struct tagged_table device_tagged = TAGGED_TABLE(device, device_fields);
