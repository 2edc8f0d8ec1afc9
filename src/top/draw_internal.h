/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the picture of a pool, for draw.c. Those that allocate return 0 or
 * BERTH_ERROR_MEMORY.
 */
#ifndef TOP_DRAW_INTERNAL_H
#define TOP_DRAW_INTERNAL_H

#include "base/text/table.h"
#include "top/draw.h"
#include "top/layout.h"
#include "view/view_facts.h"

/* A column, and what it is sorted by. */
struct pane_column {
    struct table_column table;
    enum view_column column;
};

#define PANE_COLUMNS_MAX 16

/* What all rows of a pane are drawn by. */
struct pane_facts {
    size_t width; /* of the screen */
    bool unicode;
    bool leases; /* there are some */
    bool shares; /* there are leases that share */
    bool limits; /* there are leases with a time limit */
    bool memory; /* of some devices it is known how much is used */
};

/* How a pane is drawn. */
struct pane_kind {
    const char *title;
    const char *nothing; /* what is said in place of rows */
    const struct pane_column *columns;
    size_t column_count;
    /* Adds the cells of one row. */
    void (*add)(struct table *table, const struct top_picture *picture, const struct top_row *row,
                const struct pane_facts *facts);
    /* Appends words that stand in the place of columns that a row has nothing in; NULL: none has
     * any. */
    void (*append_note)(struct text *out, const struct top_picture *picture,
                        const struct top_row *row);
    const char *note_after; /* the heading of the column before them */
};

extern const struct pane_kind pane_devices;
extern const struct pane_kind pane_leases;
extern const struct pane_kind pane_queue;

/* Draws a pane with its title. `alone`: its title names the other panes too. */
int draw_pane(const struct top_picture *picture, struct top_model *model, enum top_pane pane,
              struct layout_band band, bool alone, struct grid *grid);

/* How many lines of charts there are to draw on a screen of some width; 0: nothing is known. */
size_t draw_chart_lines(const struct top_picture *picture, const struct top_model *model,
                        size_t width);
/* The load of as many devices as there is room for, among them the selected one. */
void draw_charts(const struct top_picture *picture, const struct top_model *model,
                 struct layout_band band, struct grid *grid);

/* All devices in one line, a character each, where there is room for that. */
bool draw_has_map(const struct top_picture *picture, const struct top_model *model, size_t width);
void draw_map(const struct top_picture *picture, const struct top_model *model, size_t y,
              struct grid *grid);

/* Appends what is to be said of the selected row that its line may have no room for. */
void draw_append_detail(const struct top_picture *picture, const struct top_model *model,
                        struct text *out);
/* The same of a device; nothing for most. */
void draw_append_device_note(struct text *out, const struct top_picture *picture,
                             const struct slot_info *slot, bool leased);

/* A bar of `room` columns before some words, as "[|||||  ] 97%"; without room, or a value, only the
 * words. */
void draw_append_bar(struct text *out, size_t room, struct optional_number thousandths,
                     const char *words);

/* The last `room` steps of a device's load, one character each. */
void draw_append_spark(struct text *out, const struct top_picture *picture, size_t slot,
                       size_t room, bool unicode);

/* Cells that panes have in common. A lease of NULL has them empty, and so does one to which they do
 * not apply; where they apply to none, they are unknown, so that the column is not shown. */
void draw_add_lease_id(struct table *table, const struct lease_info *lease,
                       const struct pane_facts *facts);
void draw_add_user(struct table *table, const struct lease_info *lease, struct user_names *users,
                   const struct pane_facts *facts);
void draw_add_held(struct table *table, const struct lease_info *lease, int64_t now,
                   const struct pane_facts *facts);
void draw_add_left(struct table *table, const struct lease_info *lease, int64_t now,
                   const struct pane_facts *facts);
void draw_add_share(struct table *table, const struct lease_info *lease,
                    const struct pane_facts *facts);
/* What the lease is for, after what is to be said of it: "[idle 45m] train". */
void draw_add_job(struct table *table, const struct lease_info *lease, const char *note,
                  const struct pane_facts *facts);

/* The time of day. */
struct quantity_text draw_clock(int64_t time);

#endif
