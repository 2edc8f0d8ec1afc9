/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of the screen, for draw.c. Functions that return an int return 0 or BERTH_ERROR_MEMORY.
 */
#ifndef TOP_DRAW_INTERNAL_H
#define TOP_DRAW_INTERNAL_H

#include "base/text/table.h"
#include "top/draw.h"
#include "top/layout.h"
#include "view/view_facts.h"

/* A column of a pane, and the column to sort by. */
struct pane_column {
    struct table_column table;
    enum view_column column;
};

#define PANE_COLUMNS_MAX 16

/* Facts that decide which columns and cells all rows of a pane have. */
struct pane_facts {
    size_t width; /* of the screen */
    bool unicode;
    bool leases; /* there are leases */
    bool shares; /* some leases share a device */
    bool limits; /* some leases have a time limit */
    bool memory; /* the used memory of some device is known */
};

/* How a pane is drawn. */
struct pane_kind {
    const char *title;
    const char *nothing; /* shown if there are no rows */
    const struct pane_column *columns;
    size_t column_count;
    /* Adds the cells of one row. */
    void (*add)(struct table *table, const struct top_picture *picture, const struct top_row *row,
                const struct pane_facts *facts);
    /* Appends a note for the empty columns of a row; NULL: no row has notes. */
    void (*append_note)(struct text *out, const struct top_picture *picture,
                        const struct top_row *row);
    const char *note_after; /* the heading of the column before the note */
};

extern const struct pane_kind pane_devices;
extern const struct pane_kind pane_leases;
extern const struct pane_kind pane_queue;

/* Draws a pane with its title. `alone`: the title names the other panes, too. */
int draw_pane(const struct top_picture *picture, struct top_model *model, enum top_pane pane,
              struct layout_band band, bool alone, struct grid *grid);

/* Returns how many lines of charts a screen of this width has; 0: no load is known. */
size_t draw_chart_lines(const struct top_picture *picture, const struct top_model *model,
                        size_t width);
/* Draws the load of as many devices as fit, the selected one included. */
void draw_charts(const struct top_picture *picture, const struct top_model *model,
                 struct layout_band band, struct grid *grid);

/* The map: all devices in one line, one character each. draw_has_map() returns whether it fits. */
bool draw_has_map(const struct top_picture *picture, const struct top_model *model, size_t width);
void draw_map(const struct top_picture *picture, const struct top_model *model, size_t y,
              struct grid *grid);

/* Appends details of the selected row that may not fit into its line. */
void draw_append_detail(const struct top_picture *picture, const struct top_model *model,
                        struct text *out);
/* Appends a note about a device: squatters, drain, or its state; nothing for most devices. */
void draw_append_device_note(struct text *out, const struct top_picture *picture,
                             const struct slot_info *slot, bool leased);

/* Appends a bar of `room` columns and some words: "[|||||  ] 97%". Without room or value, appends
 * only the words. */
void draw_append_bar(struct text *out, size_t room, struct optional_number thousandths,
                     const char *words);

/* Appends the last `room` steps of a device's load, one character each. */
void draw_append_spark(struct text *out, const struct top_picture *picture, size_t slot,
                       size_t room, bool unicode);

/* Add cells that panes have in common. A cell is empty if `lease` is NULL or the column does not
 * apply to the lease. If the column applies to no lease at all, the cell is unknown, which hides
 * the column. */
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
/* Adds remarks and the job of the lease: "[adopted] train". */
void draw_add_job(struct table *table, const struct lease_info *lease, const char *note,
                  const struct pane_facts *facts);

/* Formats the time of day. */
struct quantity_text draw_clock(int64_t time);

#endif
