/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any text as a list of CPUs, and any two lines as the directories of two devices.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hardware/sysfs/locality.h"
#include "support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that a parsed list has only digits, commas and dashes, and parses to itself. */
static void try_cpus(const char *list)
{
    char *once = NULL;
    char *twice = NULL;

    require(locality_parse_cpus(list, &once, NULL) == 0);
    if (once == NULL)
        return;
    require(once[0] != '\0' && once[strspn(once, "0123456789,-")] == '\0');
    require(locality_parse_cpus(once, &twice, NULL) == 0);
    require(twice != NULL && strcmp(once, twice) == 0);
    free(once);
    free(twice);
}

static void try_address(const char *path)
{
    size_t length = strlen(path) + 1;
    struct pci_address address = locality_pci_of(path, &length);

    require(address.known == (length <= strlen(path)));
}

/* Checks that the result is symmetric, and psb for a device and itself. */
static void try_between(const char *one, const char *other, struct optional_number numa)
{
    struct optional_number none = {0};
    enum link_kind there = LINK_NVLINK;
    enum link_kind back = LINK_NVLINK;
    bool known = locality_between(one, numa, other, numa, &there);

    require(known == locality_between(other, numa, one, numa, &back));
    require(there == back);
    require(!known || !link_is_fabric(there));
    require(locality_between(one, none, one, numa, &there) && there == LINK_PSB);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    char *other;

    require(text != NULL);
    try_cpus(text);
    other = strchr(text, '\n');
    if (other != NULL)
        *other++ = '\0';
    else
        other = text + strlen(text);
    try_address(text);
    try_address(other);
    try_between(text, other, optional_number_of(0));
    try_between(text, other, (struct optional_number){0});
    free(text);
    return 0;
}
