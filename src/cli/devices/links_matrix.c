/* SPDX-License-Identifier: Apache-2.0
 *
 * The links between devices as a matrix: the best link of each pair.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/text/table.h"
#include "cli/devices/devices_output.h"

enum {
    MATRIX_MAX = 64,           /* rows; a larger matrix is unreadable */
    MATRIX_BY_DEVICE_MAX = 16, /* up to this many devices, each has a row, if that fits */
    MATRIX_DEVICES_MAX = 512,  /* maximum number of devices to group */
};

static const struct {
    enum link_kind kind;
    const char *meaning;
} legend[] = {
    {LINK_NVLINK, "nvN: NVLink, N lanes"},
    {LINK_XGMI, "xgmi: Infinity Fabric"},
    {LINK_PSB, "psb: same board"},
    {LINK_PIX, "pix: one PCIe switch"},
    {LINK_PXB, "pxb: several PCIe switches"},
    {LINK_PHB, "phb: same host bridge"},
    {LINK_NODE, "node: same NUMA node"},
    {LINK_SYS, "sys: across NUMA nodes"},
};

struct matrix {
    const struct machine *machine;
    size_t size;
    const struct link **best; /* size x size, NULL: unknown */
};

/* Groups of devices that have the same links to all others, and to each other. */
struct link_groups {
    size_t count;
    size_t *of;     /* by device */
    size_t *first;  /* by group: the first device */
    size_t *second; /* by group: the second device, or the first if there is no second */
};

static int matrix_init(struct matrix *matrix, const struct machine *machine)
{
    const struct link *link;
    size_t size = machine->devices.count;

    matrix->machine = machine;
    matrix->size = size;
    matrix->best = calloc(size * size, sizeof(*matrix->best));
    if (matrix->best == NULL)
        return -1;
    vector_for_each (link, &machine->links) {
        size_t low = link->between[0];
        size_t high = link->between[1];

        if (matrix->best[low * size + high] != NULL && !link_is_fabric(link->kind))
            continue;
        matrix->best[low * size + high] = link;
        matrix->best[high * size + low] = link;
    }
    return 0;
}

static void add_link(struct table *table, const struct link *link)
{
    if (link == NULL)
        table_cell(table, NULL);
    else if (link->kind == LINK_NVLINK && link->lanes > 0)
        table_cell_format(table, "nv%u", link->lanes);
    else
        table_cell(table, choice_name(link_kind_names, (int)link->kind));
}

static void add_rows(struct table *table, const struct matrix *matrix)
{
    for (size_t row = 0; row < matrix->size; row++) {
        table_cell_styled(table, STYLE_STRONG,
                          device_id_format(matrix->machine->devices.items[row].id).text);
        for (size_t column = 0; column < matrix->size; column++) {
            if (row == column)
                table_cell_styled(table, STYLE_FAINT, ".");
            else
                add_link(table, matrix->best[row * matrix->size + column]);
        }
    }
}

/* Returns whether the matrix has a link of this kind. */
static bool has_link_kind(const struct matrix *matrix, enum link_kind kind)
{
    for (size_t i = 0; i < matrix->size * matrix->size; i++) {
        if (matrix->best[i] != NULL && matrix->best[i]->kind == kind)
            return true;
    }
    return false;
}

/* Appends the meanings of the kinds that are shown, as many in a line as fit. */
static void write_legend(const struct matrix *matrix, size_t width, struct text *out)
{
    size_t used = 0;

    for (size_t i = 0; i < COUNT(legend); i++) {
        size_t length = strlen(legend[i].meaning);

        if (!has_link_kind(matrix, legend[i].kind))
            continue;
        if (used > 0 && width > 0 && used + strlen("; ") + length > width) {
            text_append_char(out, '\n');
            used = 0;
        }
        text_append_format(out, "%s%s", used > 0 ? "; " : "", legend[i].meaning);
        used += length + (used > 0 ? strlen("; ") : 0);
    }
    text_append_char(out, '\n');
}

static void print_table(struct table *table, const struct terminal *terminal, struct text *out)
{
    if (table_print(table, terminal, out) < 0)
        out->failed = true;
    table_finish(table);
}

/* Appends a matrix with a row for each device. */
static void write_device_rows(const struct matrix *matrix, const struct link_groups *groups,
                              const struct terminal *terminal, struct text *out)
{
    struct device_id_text headings[MATRIX_MAX];
    struct table_column columns[MATRIX_MAX + 1] = {
        {.heading = "LINKS", .priority = TABLE_ALWAYS},
    };
    struct table table;

    (void)groups;
    for (size_t i = 0; i < matrix->size; i++) {
        headings[i] = device_id_format(matrix->machine->devices.items[i].id);
        columns[i + 1] =
            (struct table_column){.heading = headings[i].text, .priority = TABLE_ALWAYS};
    }
    table_init(&table, columns, matrix->size + 1);
    add_rows(&table, matrix);
    print_table(&table, terminal, out);
}

/* The name of a group: A, B, ... Z, AA, AB, ... */
struct letters {
    char text[4];
};

static struct letters format_letters(size_t number)
{
    struct letters letters = {{(char)('A' + number % 26)}};

    if (number >= 26)
        letters = (struct letters){{(char)('A' + number / 26 - 1), (char)('A' + number % 26)}};
    return letters;
}

/* Returns whether `next` follows `last` in a range such as nvidia0-7 or nvidia0.1-3. */
static bool continues_range(struct device_id last, struct device_id next)
{
    if (last.vendor != next.vendor)
        return false;
    if (last.mig == DEVICE_NO_MIG || next.mig == DEVICE_NO_MIG)
        return last.mig == next.mig && next.index == last.index + 1;
    return last.index == next.index && next.mig == last.mig + 1;
}

/* Appends the devices of a group: "amd0-7,amd16". */
static void write_members(const struct matrix *matrix, const struct link_groups *groups,
                          size_t group, struct text *out)
{
    const struct device *devices = matrix->machine->devices.items;
    struct device_id last = {0};
    size_t run = 0; /* the length of the range so far */

    for (size_t i = groups->first[group]; i < matrix->size; i++) {
        struct device_id id = devices[i].id;

        if (groups->of[i] != group)
            continue;
        if (run > 0 && continues_range(last, id)) {
            run++;
        } else {
            if (run > 1)
                text_append_format(out, "-%u", last.mig == DEVICE_NO_MIG ? last.index : last.mig);
            text_append_format(out, "%s%s", run > 0 ? "," : "", device_id_format(id).text);
            run = 1;
        }
        last = id;
    }
    if (run > 1)
        text_append_format(out, "-%u", last.mig == DEVICE_NO_MIG ? last.index : last.mig);
}

static void add_group(struct table *table, const struct matrix *matrix,
                      const struct link_groups *groups, size_t row)
{
    struct text members = {0};

    table_cell_styled(table, STYLE_STRONG, format_letters(row).text);
    write_members(matrix, groups, row, &members);
    table->failed |= text_failed(&members);
    table_cell(table, text_string(&members));
    text_finish(&members);
    for (size_t column = 0; column < groups->count; column++) {
        size_t one = groups->first[row];
        size_t other = row == column ? groups->second[row] : groups->first[column];

        if (one == other)
            table_cell_styled(table, STYLE_FAINT, ".");
        else
            add_link(table, matrix->best[one * matrix->size + other]);
    }
}

/* Appends a matrix with a row and a letter for each group. */
static void write_group_rows(const struct matrix *matrix, const struct link_groups *groups,
                             const struct terminal *terminal, struct text *out)
{
    struct letters headings[MATRIX_MAX];
    struct table_column columns[MATRIX_MAX + 2] = {
        {.heading = "LINKS", .priority = TABLE_ALWAYS},
        {.heading = "DEVICES", .priority = TABLE_ALWAYS, .min = 12},
    };
    struct table table;

    for (size_t i = 0; i < groups->count; i++) {
        headings[i] = format_letters(i);
        columns[i + 2] =
            (struct table_column){.heading = headings[i].text, .priority = TABLE_ALWAYS};
    }
    table_init(&table, columns, groups->count + 2);
    for (size_t row = 0; row < groups->count; row++)
        add_group(&table, matrix, groups, row);
    print_table(&table, terminal, out);
}

static bool is_same_link(const struct link *one, const struct link *other)
{
    if (one == NULL || other == NULL)
        return one == other;
    return one->kind == other->kind && one->lanes == other->lanes;
}

/* Returns whether two devices have the same links to all other devices. If that holds for a and b,
 * and for b and c, then it holds for a and c, and the three links between them are the same. */
static bool are_alike(const struct matrix *matrix, size_t one, size_t other)
{
    for (size_t i = 0; i < matrix->size; i++) {
        if (i != one && i != other &&
            !is_same_link(matrix->best[one * matrix->size + i],
                          matrix->best[other * matrix->size + i]))
            return false;
    }
    return true;
}

static void groups_finish(struct link_groups *groups)
{
    free(groups->of);
    free(groups->first);
    free(groups->second);
    *groups = (struct link_groups){0};
}

static int groups_init(struct link_groups *groups, const struct matrix *matrix)
{
    size_t size = matrix->size;

    *groups = (struct link_groups){
        .of = calloc(size, sizeof(*groups->of)),
        .first = calloc(size, sizeof(*groups->first)),
        .second = calloc(size, sizeof(*groups->second)),
    };
    if (groups->of == NULL || groups->first == NULL || groups->second == NULL) {
        groups_finish(groups);
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        size_t group = 0;

        while (group < groups->count && !are_alike(matrix, groups->first[group], i))
            group++;
        groups->of[i] = group;
        if (group == groups->count) {
            groups->first[groups->count] = i;
            groups->second[groups->count++] = i;
        } else if (groups->second[group] == groups->first[group]) {
            groups->second[group] = i;
        }
    }
    return 0;
}

/* Returns whether all lines fit. After a failed allocation the last line may lack a newline. */
static bool lines_fit(const struct text *out, const struct terminal *terminal)
{
    const char *line = text_string(out);

    while (terminal->width > 0 && *line != '\0') {
        size_t length = strcspn(line, "\n");

        if (length > terminal->width)
            return false;
        line += length + (line[length] == '\n');
    }
    return true;
}

typedef void write_rows(const struct matrix *matrix, const struct link_groups *groups,
                        const struct terminal *terminal, struct text *out);

/* Writes the matrix and its legend if the matrix fits. Returns whether it fits. */
static bool write_if_it_fits(write_rows *write, const struct matrix *matrix,
                             const struct link_groups *groups, const struct terminal *terminal,
                             struct text *out)
{
    const struct terminal plain = {.width = terminal->width};
    struct text trial = {0};
    bool does_fit;

    write(matrix, groups, &plain, &trial);
    does_fit = lines_fit(&trial, terminal);
    out->failed |= trial.failed;
    text_finish(&trial);
    if (!does_fit)
        return false;
    write(matrix, groups, terminal, out);
    write_legend(matrix, terminal->width, out);
    return true;
}

/* Writes the most detailed matrix that fits. Returns false if none fits. */
static bool write_matrix(const struct matrix *matrix, const struct link_groups *groups,
                         const struct terminal *terminal, struct text *out)
{
    bool by_device = matrix->size <= MATRIX_BY_DEVICE_MAX ||
                     (matrix->size <= MATRIX_MAX && groups->count == matrix->size);

    return (by_device && write_if_it_fits(write_device_rows, matrix, groups, terminal, out)) ||
           (groups->count <= MATRIX_MAX &&
            write_if_it_fits(write_group_rows, matrix, groups, terminal, out));
}

void devices_write_links(const struct machine *machine, const struct terminal *terminal,
                         struct text *out)
{
    struct matrix matrix = {0};
    struct link_groups groups = {0};
    bool written = false;
    bool is_possible = false;

    if (machine->links.count == 0)
        return;
    text_append_char(out, '\n');
    if (machine->devices.count <= MATRIX_DEVICES_MAX) {
        if (matrix_init(&matrix, machine) < 0 || groups_init(&groups, &matrix) < 0)
            out->failed = true;
        else
            written = write_matrix(&matrix, &groups, terminal, out);
        is_possible = groups.count <= MATRIX_MAX;
        groups_finish(&groups);
        free(matrix.best);
    }
    if (!written)
        text_append_format(out, "%zu %s (%s--json lists them)\n", machine->links.count,
                           machine->links.count == 1 ? "link" : "links",
                           is_possible ? "a wider terminal shows them, " : "");
}
