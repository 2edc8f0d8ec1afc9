/* SPDX-License-Identifier: Apache-2.0 */
#include "doubles/cuda_machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doubles/cuda_visible.h"

__attribute__((noreturn)) static void refuse(const char *path, unsigned line, const char *found)
{
    fprintf(stderr, "%s:%u: wanted a statement of the CUDA double, found %s\n", path, line, found);
    exit(70);
}

/* A GPU, or an instance of the last GPU. */
static struct machine_unit *add_unit(struct machine *machine, bool is_instance)
{
    unsigned gpu = machine->count;
    struct machine_unit *unit;

    if (machine->count == MACHINE_UNITS || (is_instance && machine->count == 0))
        return NULL;
    if (is_instance) {
        gpu = machine->units[machine->count - 1].gpu;
        machine->units[gpu].has_instances = true;
    }
    unit = &machine->units[machine->count++];
    *unit = machine->units[gpu];
    if (!is_instance)
        *unit = (struct machine_unit){.name = "NVIDIA GPU"};
    unit->has_instances = false;
    unit->is_instance = is_instance;
    unit->gpu = gpu;
    return unit;
}

/* What a line says of the machine; false: it says nothing of it. */
static bool take_machine(struct machine *machine, const char *line)
{
    unsigned gpu_instance;
    unsigned compute_instance;
    struct machine_unit *unit;

    if (strcmp(line, "gpu") == 0)
        return add_unit(machine, false) != NULL;
    if (sscanf(line, "instance %u %u", &gpu_instance, &compute_instance) == 2) {
        unit = add_unit(machine, true);
        if (unit == NULL)
            return false;
        unit->gpu_instance = gpu_instance;
        unit->compute_instance = compute_instance;
        return true;
    }
    if (strcmp(line, "many-instances") == 0)
        machine->many_instances = true;
    else
        return sscanf(line, "version %d", &machine->version) == 1 ||
               sscanf(line, "init %d", &machine->init) == 1;
    return true;
}

static bool take_unit(struct machine_unit *unit, const char *line)
{
    uint32_t *pci = unit->pci;

    return sscanf(line, "uuid %47s", unit->uuid) == 1 ||
           sscanf(line, "pci %" SCNx32 ":%" SCNx32 ":%" SCNx32 ".%" SCNx32, &pci[0], &pci[1],
                  &pci[2], &pci[3]) == 4 ||
           sscanf(line, "name %95[^\n]", unit->name) == 1 ||
           sscanf(line, "memory %" SCNu64 " %" SCNu64, &unit->total, &unit->free) == 2 ||
           sscanf(line, "speed %u", &unit->speed) == 1;
}

void machine_read(struct machine *ret_machine)
{
    const char *path = getenv("CUDA_DOUBLE");
    FILE *file = path == NULL ? NULL : fopen(path, "re");
    char line[256];
    unsigned number = 0;

    if (file == NULL)
        refuse(path == NULL ? "CUDA_DOUBLE" : path, 0, "no file");
    *ret_machine = (struct machine){.version = 12040};
    while (fgets(line, sizeof(line), file) != NULL) {
        char *statement = line + strspn(line, " \t");

        number++;
        statement[strcspn(statement, "\n")] = '\0';
        if (*statement != '\0' && *statement != '#' && !take_machine(ret_machine, statement) &&
            (ret_machine->count == 0 ||
             !take_unit(&ret_machine->units[ret_machine->count - 1], statement)))
            refuse(path, number, statement);
    }
    fclose(file);
    visible_choose(ret_machine);
}

void machine_uuid(const struct machine_unit *unit, unsigned char *ret_bytes)
{
    const char *text = unit->uuid + strcspn(unit->uuid, "-");
    unsigned nibbles = 0;

    memset(ret_bytes, 0, 16);
    for (; *text != '\0' && nibbles < 32; text++) {
        unsigned digit;

        if (*text == '-' || sscanf((char[]){*text, '\0'}, "%1x", &digit) != 1)
            continue;
        ret_bytes[nibbles / 2] |= (unsigned char)(digit << (nibbles % 2 == 0 ? 4 : 0));
        nibbles++;
    }
}
