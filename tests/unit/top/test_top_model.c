/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of berth top: their order, the filter, the selection, and the keys.
 */
#include "support/unit.h"

#include <limits.h>
#include <string.h>

#include "support/failing_allocator.h"
#include "support/views/top_screens.h"

/* Returns the rows of devices by index; a minus is a further line of a device. */
static void check_devices(const struct top_screen *shown, const char *wanted)
{
    const struct top_list *list = &shown->control.model.lists[PANE_DEVICES];
    struct text found = {0};

    for (size_t i = 0; i < list->rows.count; i++) {
        if (list->rows.items[i].continuation)
            text_append_char(&found, '-');
        else
            text_append_number(&found, list->rows.items[i].slot);
    }
    assert_string_equal(text_string(&found), wanted);
    text_finish(&found);
}

static void sort_by(struct top_screen *shown, enum view_column column, bool reversed)
{
    struct top_list *list = &shown->control.model.lists[PANE_DEVICES];

    assert_true(top_model_has_column(PANE_DEVICES, column));
    list->column = column;
    list->reversed = reversed;
    assert_int_equal(control_update(&shown->control, &shown->view, &shown->users), 0);
}

/* Loads are 0 130 260 390 520 650 780 and unknown; slot 2 has two leases. */
static void devices_are_sorted_by_any_column(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    check_devices(shown, "012-34567");
    sort_by(shown, VIEW_COLUMN_LOAD, false);
    check_devices(shown, "65432-107");
    sort_by(shown, VIEW_COLUMN_LOAD, true);
    check_devices(shown, "012-34567");
    sort_by(shown, VIEW_COLUMN_DEVICE, true);
    check_devices(shown, "765432-10");
    sort_by(shown, VIEW_COLUMN_MEMORY, false);
    check_devices(shown, "65432-107");
    sort_by(shown, VIEW_COLUMN_TEMPERATURE, false);
    check_devices(shown, "65432-107");
    sort_by(shown, VIEW_COLUMN_POWER, true);
    check_devices(shown, "012-34567");
    sort_by(shown, VIEW_COLUMN_STATE, false); /* states that need attention first */
    check_devices(shown, "346012-75");
    sort_by(shown, VIEW_COLUMN_USER, true); /* devices without a user stay last */
    check_devices(shown, "2-0134567");
    sort_by(shown, VIEW_COLUMN_JOB, false);
    check_devices(shown, "2-0134567");
    sort_by(shown, VIEW_COLUMN_LEFT, false);
    check_devices(shown, "012-34567");
    sort_by(shown, VIEW_COLUMN_MODEL, false);
    check_devices(shown, "012-34567");
    top_screen_finish(shown);
}

static void keys_go_through_the_columns(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));
    const struct top_list *list = shown->control.model.lists;

    (void)state;
    assert_int_equal(list[PANE_DEVICES].column, VIEW_COLUMN_DEVICE);
    top_screen_type(shown, "s>");
    assert_int_equal(list[PANE_DEVICES].column, VIEW_COLUMN_LOAD);
    check_devices(shown, "65432-107");
    top_screen_type(shown, "r");
    check_devices(shown, "012-34567");
    top_screen_type(shown, "<<<");
    assert_int_equal(list[PANE_DEVICES].column, VIEW_COLUMN_JOB);
    assert_false(list[PANE_DEVICES].reversed);
    top_screen_type(shown, "s");
    assert_int_equal(list[PANE_DEVICES].column, VIEW_COLUMN_DEVICE);
    assert_int_equal(list[PANE_LEASES].column, VIEW_COLUMN_LEASE);
    top_screen_type(shown, "2s");
    assert_int_equal(list[PANE_LEASES].column, VIEW_COLUMN_USER);
    top_screen_type(shown, "3<");
    assert_int_equal(list[PANE_QUEUE].column, VIEW_COLUMN_JOB);
    top_screen_finish(shown);
}

static void an_order_that_is_asked_for(void **state)
{
    struct top_model model;

    (void)state;
    for (const struct choice *each = view_column_names; each->name != NULL; each++) {
        bool found = false;

        top_model_init(&model, (enum view_column)each->value);
        assert_int_equal(model.lists[model.pane].column, each->value);
        for (int pane = 0; pane < PANE_COUNT; pane++)
            found |= top_model_has_column((enum top_pane)pane, (enum view_column)each->value);
        if (!found)
            fail_msg("no pane has the column %s", each->name);
    }
    top_model_init(&model, VIEW_COLUMN_IDLE);
    assert_int_equal(model.pane, PANE_LEASES);
    top_model_init(&model, VIEW_COLUMN_WAITING);
    assert_int_equal(model.pane, PANE_QUEUE);
    top_model_init(&model, VIEW_COLUMN_USER);
    assert_int_equal(model.pane, PANE_DEVICES);
    assert_int_equal(model.lists[PANE_QUEUE].column, VIEW_COLUMN_USER);
}

static void check_filter(struct top_screen *shown, const char *filter, const char *devices,
                         size_t leases, size_t claims)
{
    top_screen_press(shown, CONTROL_ESCAPE);
    top_screen_type(shown, "/");
    top_screen_type(shown, filter);
    top_screen_press(shown, CONTROL_ENTER);
    check_devices(shown, devices);
    assert_int_equal(shown->control.model.lists[PANE_LEASES].rows.count, leases);
    assert_int_equal(shown->control.model.lists[PANE_QUEUE].rows.count, claims);
}

static void filters_find_words_anywhere(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    check_filter(shown, "train", "01", 1, 0);
    check_filter(shown, "TRAIN nvidia1", "1", 1, 0);
    check_filter(shown, "jupyter", "2-", 2, 0);
    check_filter(shown, "sick", "3", 0, 0);
    check_filter(shown, "mine.py", "4", 0, 0);
    check_filter(shown, "loud", "5", 0, 0);
    check_filter(shown, "eval", "", 0, 1);
    check_filter(shown, "4000000001", "2-", 2, 2);
    check_filter(shown, "trainpython", "", 0, 0); /* a match must be within one text */
    check_filter(shown, " ", "012-34567", 3, 2);
    assert_shows(top_screen_draw(shown, 100, 30, true), " with ' ' ");
    top_screen_press(shown, CONTROL_ESCAPE);
    check_devices(shown, "012-34567");
    top_screen_finish(shown);
}

static void a_filter_is_typed(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));
    struct top_model *model = &shown->control.model;

    (void)state;
    top_screen_type(shown, "/sickq");
    assert_shows(top_screen_draw(shown, 80, 24, true), "Show rows with: sickq_");
    assert_shows(top_screen_draw(shown, 80, 24, true), "no row matches the filter");
    top_screen_press(shown, CONTROL_BACKSPACE);
    check_devices(shown, "3");
    assert_shows(top_screen_draw(shown, 80, 24, true), " 1 Devices 1 of 8 ");
    control_press(&shown->control, (struct control_key){CONTROL_CHARACTER, 0xe9}, &shown->view,
                  &shown->users, 0);
    assert_string_equal(model->filter, "sick\xc3\xa9");
    top_screen_press(shown, CONTROL_BACKSPACE);
    assert_string_equal(model->filter, "sick");
    top_screen_press(shown, CONTROL_ERASE_LINE);
    assert_string_equal(model->filter, "");
    top_screen_press(shown, CONTROL_BACKSPACE);
    for (int i = 0; i < 3 * TOP_FILTER_MAX; i++)
        top_screen_type(shown, "x");
    assert_int_equal(strlen(model->filter), TOP_FILTER_MAX);
    top_screen_press(shown, CONTROL_ESCAPE);
    assert_int_equal(shown->control.mode, CONTROL_WATCHING);
    assert_string_equal(model->filter, "");
    top_screen_finish(shown);
}

static void a_long_filter_is_cut_between_characters(void **state)
{
    struct control control;
    char filter[3 * TOP_FILTER_MAX];

    (void)state;
    memset(filter, 0, sizeof(filter));
    for (size_t i = 0; i + 3 < sizeof(filter); i += 2)
        memcpy(filter + i, "é", 2);
    control_init(&control, VIEW_COLUMN_NONE, filter);
    assert_int_equal(strlen(control.model.filter), TOP_FILTER_MAX / 2 * 2);
    control_finish(&control);
}

static size_t selected(const struct top_screen *shown, enum top_pane pane)
{
    return shown->control.model.lists[pane].selected_row;
}

static void the_selection_moves_and_stops_at_the_ends(void **state)
{
    struct top_screen *shown = top_screen_of(view_of(8));

    (void)state;
    top_screen_draw(shown, 60, 8, true); /* five rows */
    top_screen_press(shown, CONTROL_UP);
    assert_int_equal(selected(shown, PANE_DEVICES), 0);
    top_screen_press(shown, CONTROL_DOWN);
    top_screen_type(shown, "jk");
    assert_int_equal(selected(shown, PANE_DEVICES), 1);
    top_screen_press(shown, CONTROL_PAGE_DOWN);
    assert_int_equal(selected(shown, PANE_DEVICES), 5);
    top_screen_press(shown, CONTROL_PAGE_DOWN);
    assert_int_equal(selected(shown, PANE_DEVICES), 7);
    top_screen_press(shown, CONTROL_PAGE_UP);
    assert_int_equal(selected(shown, PANE_DEVICES), 3);
    top_screen_press(shown, CONTROL_HOME);
    assert_int_equal(selected(shown, PANE_DEVICES), 0);
    top_screen_press(shown, CONTROL_END);
    assert_int_equal(selected(shown, PANE_DEVICES), 7);
    top_screen_press(shown, CONTROL_TAB);
    assert_int_equal(shown->control.model.pane, PANE_LEASES);
    top_screen_press(shown, CONTROL_DOWN); /* that pane is empty */
    top_screen_press(shown, CONTROL_BACK_TAB);
    top_screen_press(shown, CONTROL_BACK_TAB);
    assert_int_equal(shown->control.model.pane, PANE_QUEUE);
    top_model_move(&shown->control.model, &shown->view, LONG_MIN);
    top_screen_finish(shown);
}

/* Replaces the view. */
static void change_view(struct top_screen *shown, struct pool_view view)
{
    pool_view_finish(&shown->view);
    shown->view = view;
    assert_int_equal(pool_view_index(&shown->view, NULL), 0);
    assert_int_equal(control_update(&shown->control, &shown->view, &shown->users), 0);
}

static void the_selection_stays_with_what_was_selected(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));
    struct pool_view other = view_of(8);
    const struct top_row *row;

    (void)state;
    top_screen_type(shown, "jjj"); /* lease 15 on nvidia2 */
    sort_by(shown, VIEW_COLUMN_LOAD, false);
    row = top_model_selected(&shown->control.model, PANE_DEVICES);
    assert_int_equal(row->slot, 2);
    assert_int_equal(shown->view.snapshot.leases.items[row->lease].id, 15);
    top_screen_type(shown, "2j"); /* lease 14 */
    view_lease(&other, 11, 0, 1);
    view_lease(&other, 13, 1, 2);
    view_lease(&other, 14, 2, 3);
    change_view(shown, other);
    assert_int_equal(selected(shown, PANE_LEASES), 2);
    /* The device stays selected although its lease has ended. */
    row = top_model_selected(&shown->control.model, PANE_DEVICES);
    assert_int_equal(row->slot, 2);
    change_view(shown, view_of(1));
    assert_int_equal(selected(shown, PANE_DEVICES), 0);
    assert_null(top_model_selected(&shown->control.model, PANE_LEASES));
    change_view(shown, view_of(0));
    assert_null(top_model_selected(&shown->control.model, PANE_DEVICES));
    top_screen_finish(shown);
}

static void who_chose_nothing_sees_the_first_row(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    sort_by(shown, VIEW_COLUMN_LOAD, false);
    assert_int_equal(selected(shown, PANE_DEVICES), 0);
    assert_int_equal(top_model_selected(&shown->control.model, PANE_DEVICES)->slot, 6);
    top_screen_type(shown, "jjk");
    sort_by(shown, VIEW_COLUMN_LOAD, true);
    assert_int_equal(top_model_selected(&shown->control.model, PANE_DEVICES)->slot, 5);
    top_screen_press(shown, CONTROL_HOME);
    sort_by(shown, VIEW_COLUMN_LOAD, false);
    assert_int_equal(selected(shown, PANE_DEVICES), 0);
    top_screen_finish(shown);
}

static void releasing_is_asked_first(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));
    struct control *control = &shown->control;

    (void)state;
    assert_int_equal(top_screen_type(shown, "x"), CONTROL_RESULT_NONE);
    assert_shows(top_screen_draw(shown, 80, 24, true),
                 "\nRelease lease 12? y/N  (train, 4000000000, nvidia0,nvidia1)\n");
    assert_shows(top_screen_draw(shown, 26, 8, true), "\nRelease lease 12? y/N  (t…\n");
    assert_int_equal(top_screen_type(shown, "n"), CONTROL_RESULT_NONE);
    assert_shows(top_screen_draw(shown, 80, 24, true), "lease 12 was not changed");
    top_screen_type(shown, "x");
    assert_int_equal(top_screen_press(shown, CONTROL_ENTER), CONTROL_RESULT_NONE);
    top_screen_type(shown, "x");
    assert_int_equal(top_screen_type(shown, "y"), CONTROL_RESULT_EXECUTE);
    assert_int_equal(control->command.type, WIRE_STOP);
    assert_int_equal(control->command.id, 12);
    assert_int_equal(control->mode, CONTROL_WATCHING);
    top_screen_type(shown, "jjx");
    assert_shows(text_string(&control->prompt),
                 "Release 4000000001's lease 14, not yours? y/N  (jupyter-lab, ");
    top_screen_type(shown, "n3jc");
    assert_shows(text_string(&control->prompt),
                 "Cancel 4000000001's claim 18, not yours? y/N  (eval, 4000000001, 1 device)");
    assert_int_equal(top_screen_type(shown, "Y"), CONTROL_RESULT_EXECUTE);
    assert_int_equal(control->command.type, WIRE_CANCEL);
    assert_int_equal(control->command.id, 18);
    top_screen_finish(shown);
}

static void what_cannot_be_released_says_so(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));
    struct control *control = &shown->control;

    (void)state;
    top_screen_type(shown, "c");
    assert_shows(text_string(&control->message), "x releases it");
    top_screen_type(shown, "Gx"); /* nvidia7 is free */
    assert_shows(text_string(&control->message), "no lease is selected");
    top_screen_type(shown, "3x");
    assert_shows(text_string(&control->message), "c cancels it");
    shown->view.snapshot.leases.items[0].end = LEASE_END_STOPPED;
    top_screen_type(shown, "2x");
    assert_shows(text_string(&control->message), "lease 12 is ending already");
    assert_int_equal(control->mode, CONTROL_WATCHING);
    top_screen_finish(shown);
}

/* A lease may end while its question is shown. */
static void a_question_is_withdrawn(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    top_screen_type(shown, "x");
    change_view(shown, view_of(8));
    assert_int_equal(shown->control.mode, CONTROL_WATCHING);
    assert_shows(text_string(&shown->control.message), "lease 12 has ended");
    assert_int_equal(top_screen_type(shown, "y"), CONTROL_RESULT_NONE);
    change_view(shown, view_of_everything(8));
    top_screen_type(shown, "3c");
    change_view(shown, view_of(8));
    assert_shows(text_string(&shown->control.message), "claim 17 no longer waits");
    top_screen_finish(shown);
}

static void the_other_keys(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    assert_int_equal(top_screen_type(shown, "q"), CONTROL_RESULT_QUIT);
    assert_int_equal(top_screen_type(shown, "p"), CONTROL_RESULT_PAUSE);
    assert_true(shown->control.paused);
    assert_int_equal(top_screen_type(shown, " "), CONTROL_RESULT_PAUSE);
    assert_false(shown->control.paused);
    assert_int_equal(top_screen_press(shown, CONTROL_INTERRUPT), CONTROL_RESULT_QUIT);
    assert_int_equal(top_screen_press(shown, CONTROL_SUSPEND), CONTROL_RESULT_SUSPEND);
    assert_int_equal(top_screen_press(shown, CONTROL_REDRAW), CONTROL_RESULT_REDRAW);
    top_screen_type(shown, "?");
    assert_shows(top_screen_draw(shown, 80, 24, true), "berth top: keys");
    assert_shows(top_screen_draw(shown, 80, 24, true), "release the selected lease");
    for (int i = 0; i < 100; i++)
        top_screen_press(shown, CONTROL_DOWN);
    assert_shows(top_screen_draw(shown, 80, 24, true), "means unknown");
    top_screen_press(shown, CONTROL_UP);
    assert_int_equal(top_screen_type(shown, "q"), CONTROL_RESULT_NONE); /* closes the help */
    assert_hides(top_screen_draw(shown, 80, 24, true), "berth top: keys");
    top_screen_press(shown, CONTROL_HELP);
    assert_int_equal(top_screen_press(shown, CONTROL_INTERRUPT), CONTROL_RESULT_QUIT);
    top_screen_press(shown, CONTROL_UNKNOWN);
    top_screen_type(shown, "Z~\x7f");
    top_screen_finish(shown);
}

static void without_memory_there_are_no_rows(void **state)
{
    bool refused = true;

    (void)state;
    for (unsigned long n = 1; refused; n++) {
        struct top_screen *shown = top_screen_of(view_of_everything(8));
        int code;

        shown->control.model.lists[PANE_DEVICES].column = VIEW_COLUMN_USER;
        shown->control.model.filter[0] = 'n';
        failing_allocator_start(n);
        code = control_update(&shown->control, &shown->view, &shown->users);
        refused = failing_allocator_stop();
        assert_int_equal(code, refused ? BERTH_ERROR_MEMORY : 0);
        if (refused)
            check_devices(shown, "");
        top_screen_finish(shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_sorted_by_any_column),
        cmocka_unit_test(keys_go_through_the_columns),
        cmocka_unit_test(an_order_that_is_asked_for),
        cmocka_unit_test(filters_find_words_anywhere),
        cmocka_unit_test(a_filter_is_typed),
        cmocka_unit_test(a_long_filter_is_cut_between_characters),
        cmocka_unit_test(the_selection_moves_and_stops_at_the_ends),
        cmocka_unit_test(the_selection_stays_with_what_was_selected),
        cmocka_unit_test(who_chose_nothing_sees_the_first_row),
        cmocka_unit_test(releasing_is_asked_first),
        cmocka_unit_test(what_cannot_be_released_says_so),
        cmocka_unit_test(a_question_is_withdrawn),
        cmocka_unit_test(the_other_keys),
        cmocka_unit_test(without_memory_there_are_no_rows),
    };

    return cmocka_run_group_tests_name("top_model", tests, NULL, NULL);
}
