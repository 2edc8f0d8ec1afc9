/* SPDX-License-Identifier: Apache-2.0 */
#include "doubles/nvml_machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"

/* The statements about a unit that consist of a word and numbers. */
static const struct {
    const char *word;
    enum fact_name name;
    unsigned count;
} facts[] = {
    {"minor", FACT_MINOR, 1},
    {"memory", FACT_MEMORY, 3}, /* total, free, reserved */
    {"bar1", FACT_BAR1, 2},     /* total, free */
    {"utilization", FACT_UTILIZATION, 2},
    {"temperature", FACT_TEMPERATURE, 1},
    {"power", FACT_POWER, 1}, /* milliwatts */
    {"power-limit", FACT_POWER_LIMIT, 1},
    {"clocks", FACT_CLOCKS, 4}, /* graphics, SM, memory, video */
    {"max-clocks", FACT_MAX_CLOCKS, 4},
    {"capability", FACT_CAPABILITY, 2},
    {"ecc", FACT_ECC, 2},           /* corrected, uncorrected, since the driver was loaded */
    {"remapped", FACT_REMAPPED, 4}, /* corrected, uncorrected, pending, failed */
    {"retired-pending", FACT_RETIRED_PENDING, 1},
    {"mig", FACT_MIG, 2}, /* current and pending mode */
    {"mig-most", FACT_MIG_MAX, 1},
    {"gpu-instance", FACT_GPU_INSTANCE, 1},
    {"compute-instance", FACT_COMPUTE_INSTANCE, 1},
    {"pcie", FACT_PCIE, 4}, /* generation and width: maximum, current */
    {"fan", FACT_FAN, 1},
    {"nvlink-version", FACT_NVLINK_VERSION, 1},
    {"architecture", FACT_ARCHITECTURE, 1},
};

/* The state of the reader. */
struct reading {
    const char *path;
    unsigned line;
    struct machine *machine;
    struct unit *unit; /* NULL: the whole machine */
};

__attribute__((noreturn)) static void refuse(const struct reading *reading, const char *found)
{
    fprintf(stderr, "%s:%u: expected a statement of the NVML double, got %s\n", reading->path,
            reading->line, found);
    exit(70);
}

/* A macro, so that static analysis sees that it does not return. */
#define need(reading, condition, found) \
    do {                                \
        if (!(condition))               \
            refuse((reading), (found)); \
    } while (0)

/* Returns the next word of the line; NULL at its end. */
static char *next_word(char **rest)
{
    char *word;

    do
        word = strsep(rest, " \t");
    while (word != NULL && *word == '\0');
    return word;
}

static int64_t next_number(const struct reading *reading, char **rest)
{
    char *word = next_word(rest);
    char *end = NULL;
    int64_t number;

    need(reading, word != NULL, "the end of the line instead of a number");
    number = (int64_t)strtoull(word, &end, 0);
    need(reading, *end == '\0', word);
    return number;
}

/* Copies the rest of the line; \xNN is a byte. */
static void take_text(const struct reading *reading, const char *from, char *to, size_t size)
{
    size_t length = 0;

    need(reading, from != NULL, "nothing");
    while (*from != '\0' && length + 1 < size) {
        if (from[0] == '\\' && from[1] == 'x' && isxdigit(from[2]) && isxdigit(from[3])) {
            to[length++] = (char)strtoul((char[]){from[2], from[3], '\0'}, NULL, 16);
            from += 4;
        } else
            to[length++] = *from++;
    }
    to[length] = '\0';
}

bool machine_parse_pci(const char *text, struct nvml_pci_info *ret_info)
{
    static const char ends[] = "::.";
    unsigned long parts[4];

    for (unsigned i = 0; i < COUNT(parts); i++) {
        char *end;

        parts[i] = strtoul(text, &end, 16);
        if (end == text || *end != ends[i])
            return false;
        text = end + 1;
    }
    ret_info->domain = (uint32_t)parts[0];
    ret_info->bus = (uint32_t)parts[1];
    ret_info->device = (uint32_t)parts[2];
    return true;
}

static void take_pci(const struct reading *reading, const char *word, struct nvml_pci_info *info)
{
    need(reading, word != NULL && machine_parse_pci(word, info), word == NULL ? "nothing" : word);
    snprintf(info->bus_id, sizeof(info->bus_id), "%08X:%02X:%02X.0", info->domain, info->bus & 0xff,
             info->device & 0x1f);
    snprintf(info->bus_id_legacy, sizeof(info->bus_id_legacy), "%04X:%02X:%02X.0",
             info->domain & 0xffff, info->bus & 0xff, info->device & 0x1f);
}

/* Returns the position of a word in a list that ends with NULL. */
static int take_choice(const struct reading *reading, const char *word, const char *const *choices)
{
    for (int i = 0; word != NULL && choices[i] != NULL; i++) {
        if (strcmp(choices[i], word) == 0)
            return i;
    }
    refuse(reading, word == NULL ? "the end of the line" : word);
}

static void take_call(const struct reading *reading, char **rest, struct fault_list *faults)
{
    static const char *const actions[] = {"none", "return", "hang", "crash", "lie", NULL};
    struct fault *fault = &faults->items[faults->count++];
    char *function = next_word(rest);

    need(reading, faults->count < MACHINE_FAULTS && function != NULL, "too many calls, or none");
    snprintf(fault->function, sizeof(fault->function), "%s", function);
    fault->action = (enum action)take_choice(reading, next_word(rest), actions);
    if (fault->action == ACTION_RETURN)
        fault->code = (int)next_number(reading, rest);
}

static void take_lane(const struct reading *reading, char **rest)
{
    static const char *const states[] = {"inactive", "active", NULL};
    static const char *const types[] = {"gpu", "npu", "switch", "unknown", NULL};
    int64_t number = next_number(reading, rest);
    struct lane *lane;
    char *word;

    need(reading, number >= 0 && number < MACHINE_LANES, "a lane beyond the last");
    lane = &reading->unit->lanes[number];
    lane->known = true;
    lane->active = take_choice(reading, next_word(rest), states) == 1;
    word = next_word(rest);
    if (word == NULL)
        return;
    lane->type = take_choice(reading, word, types);
    if (lane->type == 3)
        lane->type = NVML_NVLINK_DEVICE_UNKNOWN;
    word = next_word(rest);
    if (word != NULL)
        take_pci(reading, word, &lane->remote);
}

static const char *const process_kinds[] = {"compute", "graphics", "mps", NULL};

static void take_process(const struct reading *reading, char **rest)
{
    struct unit *unit = reading->unit;
    struct process *process = &unit->processes[unit->processes_count++];
    char *word;

    need(reading, unit->processes_count < MACHINE_PROCESSES, "too many processes");
    process->kind = (enum process_kind)take_choice(reading, next_word(rest), process_kinds);
    process->info.pid = (uint32_t)next_number(reading, rest);
    word = next_word(rest);
    need(reading, word != NULL, "a process without its memory");
    process->info.memory = strcmp(word, "-") == 0 ? NVML_NOT_AVAILABLE : strtoull(word, NULL, 0);
    process->info.gpu_instance = NVML_NO_INSTANCE;
    process->info.compute_instance = NVML_NO_INSTANCE;
    word = next_word(rest);
    if (word != NULL) {
        process->info.gpu_instance = (uint32_t)strtoul(word, NULL, 0);
        process->info.compute_instance = (uint32_t)next_number(reading, rest);
    }
}

static void take_topology(const struct reading *reading, char **rest)
{
    struct machine *machine = reading->machine;
    int64_t one = next_number(reading, rest);
    int64_t other;
    int level;

    while (*rest != NULL && (**rest == ' ' || **rest == '\t'))
        (*rest)++;
    if (*rest == NULL || **rest == '\0') {
        machine->level = (int)one;
        return;
    }
    other = next_number(reading, rest);
    level = (int)next_number(reading, rest);
    need(reading, one >= 0 && one < MACHINE_GPUS && other >= 0 && other < MACHINE_GPUS,
         "no such pair");
    machine->levels[one][other] = level;
    machine->levels[other][one] = level;
}

static void take_instance(struct reading *reading, char **rest)
{
    struct machine *machine = reading->machine;
    int64_t number = next_number(reading, rest);

    need(reading, machine->gpus_count > 0 && number >= 0 && number < MACHINE_INSTANCES,
         "an instance beyond the last, or of no GPU");
    reading->unit = &machine->instances[machine->gpus_count - 1][number];
    reading->unit->known = true;
}

/* Reads a statement about the machine. Returns whether it was one. */
static bool take_of_machine(struct reading *reading, const char *word, char **rest)
{
    struct machine *machine = reading->machine;

    if (strcmp(word, "driver") == 0)
        take_text(reading, *rest, machine->driver, sizeof(machine->driver));
    else if (strcmp(word, "init") == 0)
        machine->init = (int)next_number(reading, rest);
    else if (strcmp(word, "count") == 0) {
        machine->count_lie = (unsigned)next_number(reading, rest);
        machine->count_said = true;
    } else if (strcmp(word, "topology") == 0)
        take_topology(reading, rest);
    else if (strcmp(word, "gpu") == 0) {
        need(reading, machine->gpus_count < MACHINE_GPUS, "too many GPUs");
        reading->unit = &machine->gpus[machine->gpus_count++];
        reading->unit->known = true;
    } else if (strcmp(word, "instance") == 0)
        take_instance(reading, rest);
    else if (strcmp(word, "call") == 0)
        take_call(reading, rest, reading->unit == NULL ? &machine->faults : &reading->unit->faults);
    else
        return false;
    return true;
}

static bool take_fact(const struct reading *reading, const char *word, char **rest)
{
    for (size_t i = 0; i < COUNT(facts); i++) {
        struct fact *fact = &reading->unit->facts[facts[i].name];

        if (strcmp(word, facts[i].word) != 0)
            continue;
        fact->known = true;
        for (unsigned k = 0; k < facts[i].count; k++)
            fact->values[k] = next_number(reading, rest);
        return true;
    }
    return false;
}

static void take_of_unit(const struct reading *reading, const char *word, char **rest)
{
    struct unit *unit = reading->unit;
    int64_t kind;

    need(reading, unit != NULL, word);
    if (strcmp(word, "name") == 0)
        take_text(reading, *rest, unit->name, sizeof(unit->name));
    else if (strcmp(word, "uuid") == 0)
        take_text(reading, *rest, unit->uuid, sizeof(unit->uuid));
    else if (strcmp(word, "serial") == 0)
        take_text(reading, *rest, unit->serial, sizeof(unit->serial));
    else if (strcmp(word, "pci") == 0) {
        take_pci(reading, next_word(rest), &unit->pci);
        unit->pci.device_id = *rest == NULL ? 0 : (uint32_t)next_number(reading, rest);
        unit->pci.subsystem_id = *rest == NULL ? 0 : (uint32_t)next_number(reading, rest);
    } else if (strcmp(word, "lane") == 0)
        take_lane(reading, rest);
    else if (strcmp(word, "process") == 0)
        take_process(reading, rest);
    else if (strcmp(word, "processes") == 0) {
        kind = take_choice(reading, next_word(rest), process_kinds);
        unit->made_up[kind] = (unsigned)next_number(reading, rest);
    } else if (!take_fact(reading, word, rest))
        refuse(reading, word);
}

static void take_line(struct reading *reading, char *line)
{
    char *rest = line;
    char *word;

    line[strcspn(line, "\n")] = '\0';
    word = next_word(&rest);
    if (word != NULL && *word != '#' && !take_of_machine(reading, word, &rest))
        take_of_unit(reading, word, &rest);
}

static void read_machine(const char *path, struct machine *machine)
{
    struct reading reading = {.path = path, .machine = machine};
    FILE *file = fopen(path, "re");
    char line[512];

    need(&reading, file != NULL, "no file");
    memset(machine, 0, sizeof(*machine));
    memset(machine->levels, 0xff, sizeof(machine->levels));
    machine->level = -1;
    while (fgets(line, sizeof(line), file) != NULL) {
        reading.line++;
        take_line(&reading, line);
    }
    fclose(file);
}

struct machine *machine_now(void)
{
    static struct machine machine;
    static struct stat seen;
    const char *path = getenv("NVML_DOUBLE");
    struct stat now;

    if (path == NULL || stat(path, &now) < 0) {
        fprintf(stderr, "NVML_DOUBLE: expected the machine's file, got %s\n",
                path == NULL ? "nothing" : path);
        exit(70);
    }
    if (now.st_ino != seen.st_ino || now.st_size != seen.st_size ||
        now.st_mtim.tv_sec != seen.st_mtim.tv_sec || now.st_mtim.tv_nsec != seen.st_mtim.tv_nsec)
        read_machine(path, &machine);
    seen = now;
    return &machine;
}
