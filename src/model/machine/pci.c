/* SPDX-License-Identifier: Apache-2.0 */
#include "model/machine/pci.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text/quote.h"

struct pci_text pci_format(struct pci_address address)
{
    struct pci_text text;

    snprintf(text.text, sizeof(text.text), "%04" PRIx32 ":%02x:%02x.%x", address.domain,
             address.bus, address.device, address.function);
    return text;
}

static int hex_digit(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    if (character >= 'A' && character <= 'F')
        return character - 'A' + 10;
    return -1;
}

/* Reads a part of 1 to `digits` hexadecimal digits that ends at `stop`, and moves past it. */
static bool read_part(const char **cursor, unsigned digits, char stop, uint32_t max,
                      uint32_t *ret_value)
{
    uint32_t value = 0;
    unsigned read = 0;

    while (read < digits && hex_digit(**cursor) >= 0) {
        value = value << 4 | (uint32_t)hex_digit(**cursor);
        (*cursor)++;
        read++;
    }
    if (read == 0 || **cursor != stop || value > max)
        return false;
    if (stop != '\0')
        (*cursor)++;
    *ret_value = value;
    return true;
}

int pci_parse(const char *string, struct pci_address *ret_address, struct berth_error *error)
{
    const char *cursor = string;
    const char *first_colon = strchr(string, ':');
    bool has_domain = first_colon != NULL && strchr(first_colon + 1, ':') != NULL;
    uint32_t domain = 0;
    uint32_t bus;
    uint32_t device;
    uint32_t function;

    if ((has_domain && !read_part(&cursor, 8, ':', UINT32_MAX, &domain)) ||
        !read_part(&cursor, 2, ':', 0xff, &bus) || !read_part(&cursor, 2, '.', 0x1f, &device) ||
        !read_part(&cursor, 1, '\0', 7, &function))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a PCI address such as 0000:07:00.0, got %s", quote(string).text);
    *ret_address = (struct pci_address){
        .known = true,
        .domain = domain,
        .bus = (uint8_t)bus,
        .device = (uint8_t)device,
        .function = (uint8_t)function,
    };
    return 0;
}

static int compare_numbers(uint32_t one, uint32_t other)
{
    return (one > other) - (one < other);
}

int pci_compare(struct pci_address one, struct pci_address other)
{
    int order = compare_numbers(one.domain, other.domain);

    if (order == 0)
        order = compare_numbers(one.bus, other.bus);
    if (order == 0)
        order = compare_numbers(one.device, other.device);
    if (order == 0)
        order = compare_numbers(one.function, other.function);
    return order;
}
