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
    "<!-- Written by `make docs` from the tables in src/spec that berth reads files by. -->\n"
    "\n"
    "# Spec files\n"
    "\n"
    "A spec file says what a workload wants: how many devices, of what kind, shared how, for how "
    "long,\n"
    "and which command gets them. It is YAML or JSON.\n"
    "\n"
    "```yaml\n"
    "name: finetune\n"
    "replicas: 2              # each with devices of its own\n"
    "gpu:\n"
    "  count: 4               # or \"all\", or a range such as 2-4\n"
    "  vendor: nvidia\n"
    "  model: H100            # part of the name\n"
    "  min_free: 20GiB\n"
    "  min_cap: \"8.0\"\n"
    "  distributed:           # one process for each device; {} takes all as usual\n"
    "    backend: nccl\n"
    "    master_port: 29500\n"
    "priority: normal\n"
    "time: 8h\n"
    "command: [\"python\", \"train.py\"]\n"
    "```\n"
    "\n"
    "```sh\n"
    "berth spec check train.yaml      # is it good, and what does it ask for?\n"
    "berth run --spec train.yaml      # claim what it says, run its command\n"
    "```\n"
    "\n"
    "A part of a device is asked for like this:\n"
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
    "The block `gpu` takes every field of ZLayer's `GpuSpec` unchanged, at the top or below "
    "`resources`.\n"
    "Fields that are not in the tables below are refused, with the nearest known name.\n";

static const char using_files[] =
    "\n"
    "## Using a file\n"
    "\n"
    "- `berth run --spec FILE` takes the request and the command from the file, and so does every "
    "other\n"
    "  verb that takes a request. `-` is standard input. Options on the command line win over the "
    "file,\n"
    "  each over the field of its own: `berth run --spec train.yaml -n 2 --time 1h`. A command on "
    "the\n"
    "  command line is run in place of the file's.\n"
    "- `berth spec check FILE...` says of each good file what it asks for. What is wrong with "
    "another is\n"
    "  told as `FILE:LINE:COLUMN: sentence`, and the exit code is 2. `--json` is for programs. No "
    "device\n"
    "  is looked for: what the machine can give, `berth plan --spec FILE` tells.\n"
    "- `berth spec schema` prints a JSON Schema (draft 2020-12) that accepts and refuses the same "
    "files.\n"
    "\n"
    "A file differs from the command line in what is usual: `vendor` is nvidia, as in ZLayer, not "
    "any one\n"
    "vendor, and `scheduling` is best-effort, not gang.\n";

static const char values[] =
    "\n"
    "## Values\n"
    "\n"
    "- Nothing (`null`, `~` or an empty value) is the same as leaving the field out.\n"
    "- A **text** may be written without quotes, also when it looks like a number or a truth "
    "value. It\n"
    "  has at most 255 bytes unless the table says otherwise.\n"
    "- A **number** is written in plain decimal digits without quotes: no sign, no leading zeros, "
    "no\n"
    "  exponent, not `0x10`, `1_000` or `4.0`. Versions of YAML disagree about most of these.\n"
    "- A **truth value** is `true` or `false`; `yes`, `no`, `on` and `off` are texts.\n"
    "- A **size** is a whole number of bytes, or a number with a unit: `K`, `M`, `G`, `T` and "
    "`KiB` to\n"
    "  `TiB` count by 1024, `KB` to `TB` by 1000; in any case, with one blank before it or none, "
    "and with\n"
    "  up to three digits behind a point: `1.5 TiB`. It is below 1000T.\n"
    "- A **duration** is a whole number of seconds; or numbers with units, the largest first, of "
    "which\n"
    "  the last may have up to three digits behind a point: `1h30m`, `2d12h`, `1.5h`, `500ms`; or "
    "hours,\n"
    "  minutes and seconds with days before them or without: `1:30:00`, `2-00:00:00`. The most is "
    "9999\n"
    "  days, 99999 hours, 9999999 minutes or 999999999 seconds.\n"
    "- A **device id** is what `berth devices` shows: `nvidia0`, `amd3`, or `nvidia0.1` for a "
    "part.\n";

static const char schema[] =
    "\n"
    "## The schema in an editor\n"
    "\n"
    "Editors that know JSON Schema complete the fields, explain them and mark mistakes while a "
    "file is\n"
    "written. Keep the schema beside the file:\n"
    "\n"
    "```sh\n"
    "berth spec schema >berth-spec.json\n"
    "```\n"
    "\n"
    "and name it in the file's first line, for editors with yaml-language-server (VS Code with its "
    "YAML\n"
    "extension, Neovim, Emacs, Helix and others):\n"
    "\n"
    "```yaml\n"
    "# yaml-language-server: $schema=berth-spec.json\n"
    "gpu:\n"
    "  count: 2\n"
    "```\n"
    "\n"
    "In VS Code, the settings can name it for all files of a kind instead: `\"yaml.schemas\":\n"
    "{\"berth-spec.json\": \"*.berth.yaml\"}`. In programs, any validator that knows draft 2020-12 "
    "and the\n"
    "regular expressions of ECMA-262 will do; the file is to be read as YAML 1.2 (core schema) or "
    "JSON.\n"
    "\n"
    "A schema judges what a reader has made of the text, so there is a little that it cannot say. "
    "These\n"
    "pass the schema, and `berth spec check` refuses them:\n"
    "\n"
    "- a number in another notation: to a schema, `4.0`, `04`, `+4`, `0x4` and `4e0` are all 4, "
    "and `.5`\n"
    "  is 0.5;\n"
    "- a text with more bytes than the table allows, but not more characters, such as 200 times "
    "`é`, and\n"
    "  a number with more digits than a text may have bytes.\n"
    "\n"
    "Nor does it see a key that stands twice, a YAML tag such as `!!str`, or a second document in "
    "the file.\n"
    "Most readers refuse the first themselves; berth refuses them all.\n";

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
    text_append(out,
                "\n## What does not go together\n\n"
                "A file is refused with one of these sentences, at the place of the field:\n\n");
    for (const struct contradiction *row = spec_rules; row->sentence != NULL; row++)
        text_append_format(out, "- %s\n", row->sentence);
    text_append(
        out, "\n## Notes\n\n"
             "These are good, but do nothing. `berth spec check` says so, and `berth run -v`:\n\n");
    for (const struct workload_note *note = workload_notes; note->sentence != NULL; note++)
        text_append_format(out, "- %s\n", note->sentence);
    text_append(
        out, "- device: an id has no effect when its vendor is not the one that is wanted\n"
             "- vendor: a name is not known, so devices with only a DRI render node are meant\n");
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
