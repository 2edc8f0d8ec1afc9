/* SPDX-License-Identifier: Apache-2.0
 *
 * Draws berth top's screen of a made-up pool as text.
 */
#ifndef TESTS_TOP_SCREENS_H
#define TESTS_TOP_SCREENS_H

#include <stdlib.h>
#include <time.h>

#include "support/views/pool_views.h"
#include "top/control.h"
#include "top/draw.h"

/* A pool, and all that its screen is made of. */
struct top_screen {
    struct pool_view view;
    struct user_names users;
    struct load_history history;
    struct control control;
    struct pool_address address;
    struct grid grid;
    struct top_picture picture;
    struct text text;
};

/* Creates a screen. Takes over the view. */
static inline struct top_screen *top_screen_of(struct pool_view view)
{
    struct top_screen *shown = calloc(1, sizeof(*shown));

    assert_non_null(shown);
    setenv("TZ", "UTC0", 1);
    tzset();
    shown->view = view;
    shown->address = (struct pool_address){.socket = (char *)"/run/somewhere", .own = true};
    assert_int_equal(pool_view_index(&shown->view, NULL), 0);
    control_init(&shown->control, VIEW_COLUMN_NONE, NULL);
    assert_int_equal(control_update(&shown->control, &shown->view, &shown->users), 0);
    shown->history = (struct load_history){.length = 600, .interval = DURATION_SECOND};
    assert_int_equal(load_history_add(&shown->history, 1, &shown->view), 0);
    shown->picture = (struct top_picture){
        .view = &shown->view,
        .address = &shown->address,
        .users = &shown->users,
        .history = &shown->history,
        .now = VIEW_NOW,
    };
    return shown;
}

static inline void top_screen_finish(struct top_screen *shown)
{
    control_finish(&shown->control);
    load_history_finish(&shown->history);
    user_names_finish(&shown->users);
    pool_view_finish(&shown->view);
    grid_finish(&shown->grid);
    text_finish(&shown->text);
    free(shown);
}

/* Draws the screen and returns its lines, which are valid until the next call. */
static inline const char *top_screen_draw(struct top_screen *shown, size_t width, size_t height,
                                          bool unicode)
{
    struct control *control = &shown->control;

    control->help_first = draw_help_first(control->help_first, height);
    shown->picture.prompt = control->prompt.length > 0 ? text_string(&control->prompt) : NULL;
    shown->picture.message = control->message.length > 0 ? text_string(&control->message) : NULL;
    shown->picture.typing = control->mode == CONTROL_FILTERING;
    shown->picture.help = control->mode == CONTROL_HELPING;
    shown->picture.help_first = control->help_first;
    shown->picture.paused = control->paused;
    assert_int_equal(grid_start(&shown->grid, width, height, unicode), 0);
    assert_int_equal(draw(&shown->picture, &shown->control.model, &shown->grid), 0);
    text_clear(&shown->text);
    for (size_t y = 0; y < height; y++) {
        grid_append_row(&shown->grid, y, &shown->text);
        text_append_char(&shown->text, '\n');
    }
    assert_false(text_failed(&shown->text));
    return text_string(&shown->text);
}

/* Presses keys that are characters. Returns the result of the last one. */
static inline int top_screen_type(struct top_screen *shown, const char *keys)
{
    int wish = CONTROL_RESULT_NONE;

    for (; *keys != '\0'; keys++)
        wish = control_press(&shown->control,
                             (struct control_key){CONTROL_CHARACTER, (unsigned char)*keys},
                             &shown->view, &shown->users, 4000000000);
    return wish;
}

static inline int top_screen_press(struct top_screen *shown, enum control_key_kind kind)
{
    return control_press(&shown->control, (struct control_key){.kind = kind}, &shown->view,
                         &shown->users, 4000000000);
}

static inline void assert_shows(const char *screen, const char *wanted)
{
    assert_non_null(screen);
    if (strstr(screen, wanted) == NULL)
        fail_msg("no '%s' in\n%s", wanted, screen);
}

static inline void assert_hides(const char *screen, const char *unwanted)
{
    assert_non_null(screen);
    if (strstr(screen, unwanted) != NULL)
        fail_msg("'%s' in\n%s", unwanted, screen);
}

/* Sets the load of a device. */
static inline void view_load(struct pool_view *view, size_t slot, int64_t thousandths)
{
    struct load *load = &view->snapshot.slots.items[slot].device->load;

    load->utilization = load_figure_sampled(thousandths, VIEW_NOW);
    load->memory_free =
        load_figure_sampled((INT64_C(80) << 30) / 1000 * (1000 - thousandths), VIEW_NOW);
    load->temperature = load_figure_sampled(30000 + 50 * thousandths, VIEW_NOW);
    load->power = load_figure_sampled(50000 + 350 * thousandths, VIEW_NOW);
}

/* Returns a pool with every kind of lease, claim and slot. It needs at least 8 devices. */
static inline struct pool_view view_of_everything(size_t count)
{
    struct pool_view view = view_of(count);
    struct slot_info *slots = view.snapshot.slots.items;
    struct device_process *process;
    struct lease_info *lease;

    lease = view_lease(&view, 12, 0, 2);
    lease->name = view_text("train");
    lease->command = view_text("python train.py --epochs 90");
    lease->expires = optional_number_of(VIEW_NOW + 110 * DURATION_MINUTE);
    for (uint64_t id = 14; id <= 15; id++) {
        lease = view_lease(&view, id, 2, 3);
        lease->command = view_text("jupyter-lab");
        lease->sharing = SHARING_TIME_SLICE;
        lease->share = id == 14 ? 250000 : 500000;
        lease->uid = 4000000001;
    }
    lease->idle = optional_number_of(45 * DURATION_MINUTE);
    lease->idle_warned = true;
    slots[2].state = SLOT_STATE_SHARED;
    slots[2].sharing = SHARING_TIME_SLICE;
    slots[3].state = SLOT_STATE_SICK;
    slots[3].device->health = HEALTH_SICK;
    slots[3].device->health_reason = view_text("Xid 79");
    slots[4].state = SLOT_STATE_SQUATTED;
    process = vector_append(&slots[4].device->processes);
    assert_non_null(process);
    *process =
        (struct device_process){.pid = 4711, .uid = optional_number_of(4000000002), .squats = true};
    process->command = view_text("python mine.py");
    slots[5].state = SLOT_STATE_DRAINED;
    slots[5].reason = view_text("fan is loud");
    slots[5].reason_uid = optional_number_of(4000000003);
    slots[5].reason_time = VIEW_NOW - 2 * DURATION_HOUR;
    slots[6].state = SLOT_STATE_ELSEWHERE;
    for (size_t i = 0; i < count; i++)
        view_load(&view, i, (int64_t)(i * 130 % 1001));
    slots[7].state = SLOT_STATE_ASLEEP;
    slots[7].device->load = (struct load){0};
    view_claim(&view, 17, "4 devices", "needs 4, 1 free: user 0 holds 2, 1 is sick")->estimate =
        optional_number_of(110 * DURATION_MINUTE);
    view_claim(&view, 18, "1 device", "needs 1, but user 0 holds 1 of at most 1 device")->name =
        view_text("eval");
    return view;
}

#endif
