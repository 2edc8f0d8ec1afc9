/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes docs/SPEC.md: tables of fields from the readers' tables, and the paragraphs here.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/vector.h"
#include "spec/workload.h"
#include "write_spec.h"

static const char introduction[] =
    "<!-- Written by `make docs` from the tables in src/spec. Do not edit. -->\n"
    "\n"
    "# Spec files\n"
    "\n"
    "A spec file describes a job: how many devices of what kind it needs, whether it shares them, "
    "for how\n"
    "long, and its command. It is YAML or JSON.\n"
    "\n"
    "```yaml\n"
    "name: finetune\n"
    "replicas: 2              # each with its own devices\n"
    "gpu:\n"
    "  count: 4               # or \"all\", or a range such as 2-4\n"
    "  vendor: nvidia\n"
    "  model: H100            # part of the name\n"
    "  min_free: 20GiB\n"
    "  min_cap: \"8.0\"\n"
    "  distributed:           # one process per device; {} uses all defaults\n"
    "    backend: nccl\n"
    "    master_port: 29500\n"
    "priority: normal\n"
    "time: 8h\n"
    "command: [\"python\", \"train.py\"]\n"
    "```\n"
    "\n"
    "```sh\n"
    "berth spec check train.yaml      # is it valid, and what does it request?\n"
    "berth run --spec train.yaml      # wait for the devices, then run the command\n"
    "```\n"
    "\n"
    "This file requests a part of a device:\n"
    "\n"
    "```yaml\n"
    "name: notebook\n"
    "gpu:\n"
    "  sharing: time-slice    # or mps\n"
    "  share: 0.5\n"
    "  memory: 40GiB\n"
    "time: 8h\n"
    "command: [jupyter, lab]\n"
    "```\n"
    "\n"
    "The block `gpu` accepts every field of ZLayer's `GpuSpec` unchanged, at the top or below "
    "`resources`.\n"
    "Unknown fields are refused; the message suggests the nearest known name.\n";

static const char using_files[] =
    "\n"
    "## Using a file\n"
    "\n"
    "- `berth run --spec FILE` and the other verbs that take a request read it from the file. `-` "
    "is\n"
    "  standard input. Options on the command line override the fields of the file:\n"
    "  `berth run --spec train.yaml -n 2 --time 1h`. A command on the command line replaces the "
    "file's\n"
    "  command.\n"
    "- `berth spec check FILE...` prints the request of each valid file. Errors have the form\n"
    "  `FILE:LINE:COLUMN: sentence`, and the exit code is 2. `--json` prints JSON. The command "
    "does not\n"
    "  look at devices: `berth plan --spec FILE` shows which devices the request would get.\n"
    "- `berth spec schema` prints a JSON Schema (draft 2020-12) that accepts the same files.\n"
    "\n"
    "Two defaults differ from the command line: `vendor` is nvidia, as in ZLayer, and `scheduling` "
    "is\n"
    "best-effort, not gang.\n";

static const char values[] =
    "\n"
    "## Values\n"
    "\n"
    "- Null (`null`, `~` or an empty value) is the same as leaving the field out.\n"
    "- A **text** may be written without quotes, also if it looks like a number or a truth value. "
    "It has\n"
    "  at most 255 bytes unless the table says otherwise.\n"
    "- A **number** has plain decimal digits without quotes: no sign, no leading zeros, no "
    "exponent, not\n"
    "  `0x10`, `1_000` or `4.0`. Versions of YAML disagree about most of these.\n"
    "- A **truth value** is `true` or `false`; `yes`, `no`, `on` and `off` are texts.\n"
    "- A **size** is a whole number of bytes, or a number with a unit: `K`, `M`, `G`, `T` and "
    "`KiB` to\n"
    "  `TiB` are powers of 1024, `KB` to `TB` are powers of 1000. The unit is in upper or lower "
    "case,\n"
    "  with at most one blank before it. The number may have up to three decimals: `1.5 TiB`. The "
    "maximum\n"
    "  is below 1000T.\n"
    "- A **duration** is a whole number of seconds; or numbers with units, from the largest unit "
    "to the\n"
    "  smallest, the last with up to three decimals: `1h30m`, `2d12h`, `1.5h`, `500ms`; or hours, "
    "minutes\n"
    "  and seconds, with or without days: `1:30:00`, `2-00:00:00`. The maximum is 9999 days, 99999 "
    "hours,\n"
    "  9999999 minutes or 999999999 seconds.\n"
    "- A **device id** is a name from `berth devices`: `nvidia0`, `amd3`, or `nvidia0.1` for a "
    "partition.\n";

static const char schema[] =
    "\n"
    "## The schema in an editor\n"
    "\n"
    "Editors that support JSON Schema complete and explain the fields and mark errors. Save the "
    "schema next\n"
    "to the file:\n"
    "\n"
    "```sh\n"
    "berth spec schema >berth-spec.json\n"
    "```\n"
    "\n"
    "Then name it in the first line of the file, for editors with yaml-language-server (VS Code "
    "with its\n"
    "YAML extension, Neovim, Emacs, Helix and others):\n"
    "\n"
    "```yaml\n"
    "# yaml-language-server: $schema=berth-spec.json\n"
    "gpu:\n"
    "  count: 2\n"
    "```\n"
    "\n"
    "In VS Code, the settings can name it for many files: `\"yaml.schemas\": "
    "{\"berth-spec.json\":\n"
    "\"*.berth.yaml\"}`. Programs can use any validator with draft 2020-12 and the regular "
    "expressions of\n"
    "ECMA-262. They must read the file as YAML 1.2 (core schema) or JSON.\n"
    "\n"
    "A schema sees only the values, not the text, so it cannot find all errors. It accepts these, "
    "but\n"
    "`berth spec check` refuses them:\n"
    "\n"
    "- a number in another notation: for a schema, `4.0`, `04`, `+4`, `0x4` and `4e0` are all 4, "
    "and `.5`\n"
    "  is 0.5;\n"
    "- a text with more bytes than the table allows, but not more characters, such as 200 times "
    "`é`, and\n"
    "  a number with more digits than a text may have bytes.\n"
    "\n"
    "It also does not see a repeated key, a YAML tag such as `!!str`, or a second document in the "
    "file. Most\n"
    "YAML readers refuse repeated keys themselves; berth refuses all three.\n";

/* ---- Cells ---- */

enum field_column { COLUMN_FIELD, COLUMN_VALUE, COLUMN_DEFAULT, COLUMN_MEANING, COLUMNS };

struct row {
    struct text cells[COLUMNS];
};

/* A Markdown table whose columns are aligned in its source, too. */
struct rows {
    VECTOR_OF(struct row);
    bool failed;
};

/* Appends a name as code. */
static void append_code(struct text *out, const char *word)
{
    text_append_format(out, "`%s`", word);
}

static void append_choices(struct text *out, const struct choice *choices)
{
    for (const struct choice *choice = choices; choice->name != NULL; choice++) {
        if (choice != choices)
            text_append(out, choice[1].name == NULL ? " or " : ", ");
        append_code(out, choice->name);
    }
}

/* Describes the accepted values. */
static void append_value(struct text *out, const struct field *field)
{
    const struct field_type *type = field->type;

    if (field->choices != NULL) {
        append_choices(out, field->choices);
        return;
    }
    if (field->record != NULL) {
        text_append(out, "a block");
        return;
    }
    assert(type->wanted != NULL);
    text_append(out, type->wanted);
    if (type == &field_number || type == &field_number32)
        text_append_format(out, " from %" PRIu64 " to %" PRIu64, field->min, field->max);
    else if (type == &field_text && field->max != 0)
        text_append_format(out, " of up to %" PRIu64 " bytes", field->max);
    if (field->example != NULL && type != &field_boolean &&
        strstr(type->wanted, "such as") == NULL) {
        text_append(out, ", such as ");
        append_code(out, field->example);
    }
}

static void append_default(struct text *out, const struct field *field)
{
    bool is_word = field->default_text != NULL && strchr(field->default_text, ' ') == NULL &&
                   (field->choices != NULL || field->type == &field_boolean ||
                    strspn(field->default_text, "0123456789") > 0);

    if (is_word)
        append_code(out, field->default_text);
    else if (field->default_text != NULL)
        text_append(out, field->default_text);
}

static struct row *new_row(struct rows *rows)
{
    struct row *row = vector_append(rows);

    rows->failed = rows->failed || row == NULL;
    if (row != NULL)
        *row = (struct row){0};
    return row;
}

static void add_field(struct rows *rows, const struct field *field)
{
    struct row *row = new_row(rows);

    if (row == NULL)
        return;
    append_code(&row->cells[COLUMN_FIELD], field->name);
    append_value(&row->cells[COLUMN_VALUE], field);
    append_default(&row->cells[COLUMN_DEFAULT], field);
    text_append(&row->cells[COLUMN_MEANING], field->help);
}

/* ---- Tables ---- */

static size_t width_of(const struct rows *rows, size_t field_column)
{
    const struct row *row;
    size_t widest = 0;

    vector_for_each (row, rows) {
        if (row->cells[field_column].length > widest)
            widest = row->cells[field_column].length;
    }
    return widest;
}

/* The last column is not padded, so that lines do not end in blanks. */
static void append_line(struct text *out, const struct rows *rows, const struct row *row)
{
    for (size_t field_column = 0; field_column < COLUMNS; field_column++) {
        const struct text *cell = &row->cells[field_column];

        text_append_format(out, "| %s ", text_string(cell));
        if (field_column + 1 < COLUMNS)
            text_append_repeated(out, ' ', width_of(rows, field_column) - cell->length);
    }
    text_append(out, "|\n");
}

static void append_rule(struct text *out, const struct rows *rows)
{
    for (size_t field_column = 0; field_column < COLUMNS; field_column++) {
        size_t width =
            field_column + 1 < COLUMNS ? width_of(rows, field_column) : strlen("meaning");

        text_append_char(out, '|');
        text_append_repeated(out, '-', width + 2);
    }
    text_append(out, "|\n");
}

static void append_table(struct text *out, const struct record *record)
{
    static const char *const headings[COLUMNS] = {"field", "value", "when left out", "meaning"};
    struct rows rows = {0};
    struct row *row = new_row(&rows);

    for (size_t field_column = 0; field_column < COLUMNS && row != NULL; field_column++)
        text_append(&row->cells[field_column], headings[field_column]);
    for (size_t i = 0; i < record->field_count && !rows.failed; i++)
        add_field(&rows, &record->fields[i]);
    vector_for_each (row, &rows) {
        append_line(out, &rows, row);
        if (row == rows.items)
            append_rule(out, &rows);
    }
    vector_for_each (row, &rows) {
        for (size_t field_column = 0; field_column < COLUMNS; field_column++) {
            out->failed = out->failed || text_failed(&row->cells[field_column]);
            text_finish(&row->cells[field_column]);
        }
    }
    out->failed = out->failed || rows.failed;
    vector_finish(&rows);
}

/* Writes the record and those within it, each under the path of the first field that holds it. */
static void append_record(struct text *out, const struct record *record, const char *path)
{
    text_append_format(out, "\n### %s\n\n", *path == '\0' ? "At the top" : path);
    append_table(out, record);
    for (size_t i = 0; i < record->field_count; i++) {
        const struct field *field = &record->fields[i];
        struct text below = {0};

        if (field->record == NULL || strcmp(path, "resources") == 0)
            continue;
        text_append_format(&below, "%s%s%s", path, *path == '\0' ? "" : ".", field->name);
        append_record(out, field->record, text_string(&below));
        text_finish(&below);
    }
}

/* ---- Sentences ---- */

static void append_sentences(struct text *out)
{
    text_append(out, "\n## What does not go together\n\n"
                     "A file that breaks one of these rules is refused. The message has the "
                     "position of the field:\n\n");
    for (const struct contradiction *row = spec_rules; row->sentence != NULL; row++) {
        if (row == spec_rules || strcmp(row->sentence, row[-1].sentence) != 0)
            text_append_format(out, "- %s\n", row->sentence);
    }
    text_append(
        out, "\n## Notes\n\n"
             "These fields are accepted, but have no effect. `berth spec check` and `berth run -v` "
             "print a note:\n\n");
    for (const struct workload_note *note = workload_notes; note->sentence != NULL; note++)
        text_append_format(out, "- %s\n", note->sentence);
    text_append(out, "- device: an id of another vendor than that of the request has no effect\n"
                     "- vendor: an unknown name means devices that have just a DRI render node\n");
}

void spec_document_write(struct text *out)
{
    text_append(out, introduction);
    text_append(out, using_files);
    text_append(out, "\n## Fields\n");
    append_record(out, &workload_record, "");
    text_append(out, values);
    append_sentences(out);
    text_append(out, schema);
}
