/* SPDX-License-Identifier: Apache-2.0
 *
 * Who reaches whom how, as a matrix: the best link of each pair.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/table.h"
#include "cli/devices_output.h"

/* Beyond this many devices a matrix tells nobody anything. */
enum { MATRIX_MOST = 64 };

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
    size_t size;
    const struct link **best; /* size x size, NULL: unknown */
};

static int matrix_init(struct matrix *matrix, const struct machine *machine)
{
    const struct link *link;
    size_t size = machine->devices.count;

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

static void add_rows(struct table *table, const struct machine *machine,
                     const struct matrix *matrix)
{
    for (size_t row = 0; row < matrix->size; row++) {
        table_cell_styled(table, STYLE_STRONG,
                          device_id_format(machine->devices.items[row].id).text);
        for (size_t column = 0; column < matrix->size; column++) {
            if (row == column)
                table_cell_styled(table, STYLE_FAINT, ".");
            else
                add_link(table, matrix->best[row * matrix->size + column]);
        }
    }
}

/* Whether the matrix shows a link of this kind somewhere. */
static bool shows(const struct matrix *matrix, enum link_kind kind)
{
    for (size_t i = 0; i < matrix->size * matrix->size; i++) {
        if (matrix->best[i] != NULL && matrix->best[i]->kind == kind)
            return true;
    }
    return false;
}

static void write_legend(const struct matrix *matrix, struct text *out)
{
    const char *separator = "";

    for (size_t i = 0; i < COUNT(legend); i++) {
        if (!shows(matrix, legend[i].kind))
            continue;
        text_append_format(out, "%s%s", separator, legend[i].meaning);
        separator = "; ";
    }
    text_append_char(out, '\n');
}

/* Prints the matrix into `out` and tells whether it fits. */
static bool write_matrix(const struct machine *machine, const struct terminal *terminal,
                         const struct matrix *matrix, struct text *out)
{
    struct device_id_text headings[MATRIX_MOST];
    struct table_column columns[MATRIX_MOST + 1] = {
        {.heading = "LINKS", .priority = TABLE_ALWAYS},
    };
    struct table table;

    for (size_t i = 0; i < matrix->size; i++) {
        headings[i] = device_id_format(machine->devices.items[i].id);
        columns[i + 1] =
            (struct table_column){.heading = headings[i].text, .priority = TABLE_ALWAYS};
    }
    table_init(&table, columns, matrix->size + 1);
    add_rows(&table, machine, matrix);
    if (table_print(&table, terminal, out) < 0)
        out->failed = true;
    table_finish(&table);
    return terminal->width == 0 || strcspn(text_string(out), "\n") <= terminal->width;
}

void links_write_matrix(const struct machine *machine, const struct terminal *terminal,
                        struct text *out)
{
    struct terminal plain = {.width = terminal->width, .unicode = terminal->unicode};
    struct matrix matrix;
    struct text trial = {0};

    if (machine->links.count == 0)
        return;
    text_append_char(out, '\n');
    if (machine->devices.count > MATRIX_MOST) {
        text_append_format(out, "%zu %s (--json lists them)\n", machine->links.count,
                           machine->links.count == 1 ? "link" : "links");
        return;
    }
    if (matrix_init(&matrix, machine) < 0) {
        out->failed = true;
        return;
    }
    if (write_matrix(machine, &plain, &matrix, &trial)) {
        write_matrix(machine, terminal, &matrix, out);
        write_legend(&matrix, out);
    } else {
        text_append_format(out, "%zu links (a wider terminal shows them, --json lists them)\n",
                           machine->links.count);
    }
    out->failed |= trial.failed;
    text_finish(&trial);
    free(matrix.best);
}
