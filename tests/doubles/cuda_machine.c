/* SPDX-License-Identifier: Apache-2.0 */
#include "doubles/cuda_machine.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doubles/cuda_visible.h"

__attribute__((noreturn)) static void refuse(const char *path, unsigned line, const char *found)
{
    fprintf(stderr, "%s:%u: expected a statement of the CUDA double, got %s\n", path, line, found);
    exit(70);
}

/* Adds a GPU, or an instance of the last GPU. */
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

/* Reads numbers that are separated by these characters, up to the end of the text. */
static bool take_numbers(const char *text, int base, const char *ends, uint64_t *ret_numbers)
{
    for (size_t i = 0; i <= strlen(ends); i++) {
        char *end;

        ret_numbers[i] = strtoull(text, &end, base);
        if (end == text || *end != ends[i])
            return false;
        text = end + 1;
    }
    return true;
}

static bool take_instance(struct machine *machine, const uint64_t *numbers)
{
    struct machine_unit *unit = add_unit(machine, true);

    if (unit == NULL)
        return false;
    unit->gpu_instance = (unsigned)numbers[0];
    unit->compute_instance = (unsigned)numbers[1];
    return true;
}

/* Reads a statement about the machine; false: it is another statement. */
static bool take_machine(struct machine *machine, const char *word, const char *rest)
{
    uint64_t numbers[2];

    if (strcmp(word, "gpu") == 0)
        return add_unit(machine, false) != NULL;
    if (strcmp(word, "instance") == 0)
        return take_numbers(rest, 10, " ", numbers) && take_instance(machine, numbers);
    if (strcmp(word, "many-instances") == 0)
        machine->many_instances = true;
    else if (strcmp(word, "version") == 0 && take_numbers(rest, 10, "", numbers))
        machine->version = (int)numbers[0];
    else if (strcmp(word, "init") == 0 && take_numbers(rest, 10, "", numbers))
        machine->init = (int)numbers[0];
    else
        return false;
    return true;
}

static bool take_unit(struct machine_unit *unit, const char *word, const char *rest)
{
    uint64_t numbers[4];

    if (strcmp(word, "uuid") == 0)
        snprintf(unit->uuid, sizeof(unit->uuid), "%s", rest);
    else if (strcmp(word, "name") == 0)
        snprintf(unit->name, sizeof(unit->name), "%s", rest);
    else if (strcmp(word, "speed") == 0 && take_numbers(rest, 10, "", numbers))
        unit->speed = (unsigned)numbers[0];
    else if (strcmp(word, "memory") == 0 && take_numbers(rest, 10, " ", numbers)) {
        unit->total = numbers[0];
        unit->free = numbers[1];
    } else if (strcmp(word, "pci") == 0 && take_numbers(rest, 16, "::.", numbers)) {
        for (unsigned i = 0; i < 4; i++)
            unit->pci[i] = (uint32_t)numbers[i];
    } else
        return false;
    return true;
}

/* Reads one statement: a word and its arguments. */
static bool take_statement(struct machine *machine, char *statement)
{
    char *rest = statement;
    const char *word = strsep(&rest, " ");

    if (rest == NULL)
        rest = statement + strlen(statement);
    return take_machine(machine, word, rest) ||
           (machine->count > 0 && take_unit(&machine->units[machine->count - 1], word, rest));
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
        if (*statement != '\0' && *statement != '#' && !take_statement(ret_machine, statement))
            refuse(path, number, statement);
    }
    fclose(file);
    visible_choose(ret_machine);
}

void machine_uuid(const struct machine_unit *unit, unsigned char *ret_bytes)
{
    const char *text = unit->uuid + strcspn(unit->uuid, "-");
    unsigned digits = 0;

    memset(ret_bytes, 0, 16);
    for (; *text != '\0' && digits < 32; text++) {
        if (!isxdigit((unsigned char)*text))
            continue;
        ret_bytes[digits / 2] =
            (unsigned char)(ret_bytes[digits / 2] << 4 | strtoul((char[]){*text, '\0'}, NULL, 16));
        digits++;
    }
}
