/* SPDX-License-Identifier: Apache-2.0
 *
 * The screens of berth top as text, at all sizes.
 */
#include "support/unit.h"

#include <string.h>

#include "base/text/utf8.h"
#include "support/failing_allocator.h"
#include "support/views/top_screens.h"

static void all_is_there_where_there_is_room(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));
    const char *screen = top_screen_draw(shown, 150, 40, true);

    (void)state;
    assert_shows(screen,
                 "8 devices: 1 free, 2 leased, 1 shared, 4 out of use, 2 waiting  your own pool");
    assert_shows(screen, "12:00:00");
    assert_shows(screen, " 1 Devices 8 ");
    assert_shows(screen, "nvidia0 0% ");
    assert_shows(screen, "[|         ]  13%");
    assert_shows(screen, "leased         12  4000000000  2h10m  1h50m         train");
    assert_shows(screen, "time-slice     14  4000000001  2h10m         0.25   jupyter-lab");
    assert_shows(screen, "15  4000000001  2h10m         0.5    [idle");
    assert_shows(screen, "sick");
    assert_shows(screen, "Xid 79");
    assert_shows(screen, "squatted");
    assert_shows(screen, "4000000002: python mine.py");
    assert_shows(screen, "drained");
    assert_shows(screen, "fan is loud");
    assert_shows(screen, "elsewhere");
    assert_shows(screen, "held by another pool");
    assert_shows(screen, "asleep");
    assert_shows(screen, " 2 Leases 3 ");
    assert_shows(screen, "nvidia0,nvidia1");
    assert_shows(screen, "45m");
    assert_shows(screen, " 3 Queue 2 ");
    assert_shows(screen, "in 1h50m  4 devices");
    assert_shows(screen, " 1 free: root holds 2, 1 is sick");
    assert_shows(screen, "eval");
    assert_shows(screen, "nvidia0: lease 12 (train), pid 77: python train.py --epochs 90");
    assert_shows(screen, "q quit");
    top_screen_finish(shown);
}

/* The program fetches the front of a long queue only. */
static void the_header_counts_claims_that_were_not_fetched(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    shown->view.snapshot.pending = 70000;
    assert_shows(top_screen_draw(shown, 150, 40, true), ", 70000 waiting  your own pool");
    assert_shows(text_string(&shown->text), " 3 Queue 2 ");
    assert_shows(top_screen_draw(shown, 44, 8, true), "1/8 free, 70000 wait  ");
    top_screen_finish(shown);
}

/* The load of a sleeping device is unknown. */
static void what_is_unknown_is_no_zero(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));
    const char *start = strstr(top_screen_draw(shown, 150, 40, true), "\nnvidia7  ");
    char line[1024] = "";

    (void)state;
    assert_non_null(start);
    memcpy(line, start + 1, strcspn(start + 1, "\n"));
    assert_shows(line, "  -  ");
    assert_shows(line, "asleep");
    assert_hides(line, "0%");
    assert_hides(line, "0°C");
    assert_hides(line, "0W");
    assert_shows(line, " -/80 GiB ");
    assert_shows(top_screen_draw(shown, 150, 50, true), "nvidia7 - ─");
    top_screen_finish(shown);
}

/* If no used memory is known, the column shows the total only. */
static void memory_that_nobody_knows_of(void **state)
{
    struct top_screen *shown = top_screen_of(view_of(2));

    (void)state;
    assert_hides(top_screen_draw(shown, 150, 40, true), "-/80");
    assert_shows(top_screen_draw(shown, 150, 40, true), " 80 GiB ");
    top_screen_finish(shown);
}

static void a_small_screen_has_one_pane(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    assert_string_equal(top_screen_draw(shown, 44, 8, true),
                        "1/8 free, 2 wait  your own pool     12:00:00\n"
                        " 1 Devices 8  2 Leases 3  3 Queue 2 ────────\n"
                        "DEVICE▲  LOAD  STATE       USER\n"
                        "nvidia0    0%  leased      4000000000\n"
                        "nvidia1   13%  leased      4000000000\n"
                        "nvidia2   26%  time-slice  4000000001\n"
                        "  └                        4000000001\n"
                        "q quit  h help  Tab pane  s sort  / filter\n");
    top_screen_type(shown, "3");
    assert_string_equal(top_screen_draw(shown, 44, 6, true),
                        "1/8 free, 2 wait  your own pool     12:00:00\n"
                        " 1 Devices 8  2 Leases 3  3 Queue 2 ────────\n"
                        "CLAIM  USER      WAITING    STARTS  WANTS\n"
                        "   17  4000000…      12m  in 1h50m  4 devic…\n"
                        "   18  4000000…      12m         -  1 device\n"
                        "q quit  h help  Tab pane  s sort  / filter\n");
    top_screen_finish(shown);
}

/* A single row shows the selected row. */
static void a_tiny_screen_has_one_row(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    top_screen_type(shown, "j");
    assert_int_equal(strncmp(top_screen_draw(shown, 40, 1, true), "nvidia1 ", 8), 0);
    assert_true(shown->grid.cells[0].reverse);
    top_screen_draw(shown, 40, 2, true);
    assert_shows(text_string(&shown->text), "1/8 free, 2 wait");
    assert_shows(text_string(&shown->text), "\nnvidia1 ");
    top_screen_finish(shown);
}

/* A long path is cut at its beginning, or left out. */
static void a_long_path_is_told_by_its_end(void **state)
{
    struct top_screen *shown = top_screen_of(view_of(8));

    (void)state;
    shown->address.own = false;
    shown->address.socket = (char *)"/srv/a/long/way/to/berth.sock";
    assert_shows(top_screen_draw(shown, 100, 24, true),
                 "nobody waits  pool at /srv/a/long/way/to/berth.sock  ");
    assert_shows(top_screen_draw(shown, 80, 24, true), "nobody waits  pool at …/berth.sock  ");
    assert_shows(top_screen_draw(shown, 70, 24, true), "nobody waits  …/berth.sock  ");
    assert_shows(top_screen_draw(shown, 70, 24, false), "nobody waits  ~/berth.sock  ");
    assert_shows(top_screen_draw(shown, 55, 24, true),
                 "8 devices: 8 free, 0 leased, nobody waits      12");
    top_screen_finish(shown);
}

/* The end of the typed text is visible, however long it is. */
static void the_end_of_what_is_typed_is_seen(void **state)
{
    struct top_screen *shown = top_screen_of(view_of(2));

    (void)state;
    top_screen_type(shown, "/0123456789abcdef");
    assert_shows(top_screen_draw(shown, 40, 8, true), "\nShow rows with: 0123456789abcdef_\n");
    assert_shows(top_screen_draw(shown, 12, 8, true), "\n…6789abcdef_\n");
    assert_shows(top_screen_draw(shown, 12, 8, false), "\n~6789abcdef_\n");
    top_screen_finish(shown);
}

static void help_is_scrolled_no_further_than_its_end(void **state)
{
    struct top_screen *shown = top_screen_of(view_of(2));

    (void)state;
    top_screen_type(shown, "h");
    for (int i = 0; i < 40; i++) {
        top_screen_press(shown, CONTROL_DOWN);
        assert_shows(top_screen_draw(shown, 80, 30, true),
                     "Up Down j k  "); /* there is room for all */
    }
    for (int i = 0; i < 40; i++) {
        top_screen_press(shown, CONTROL_DOWN);
        assert_shows(top_screen_draw(shown, 80, 8, true), "Up Down: more");
    }
    assert_shows(text_string(&shown->text), "- means unknown.\n");
    assert_hides(text_string(&shown->text), "p or Space");
    top_screen_press(shown, CONTROL_UP);
    assert_hides(top_screen_draw(shown, 80, 8, true), "- means unknown.\n");
    top_screen_finish(shown);
}

static void ascii_will_do(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));
    const char *screen = top_screen_draw(shown, 150, 40, false);

    (void)state;
    for (const char *byte = screen; *byte != '\0'; byte++)
        assert_true((unsigned char)*byte < 0x80);
    assert_shows(screen, "DEVICE^");
    assert_shows(screen, "  +  ");
    assert_shows(screen, "37C");
    top_screen_finish(shown);
}

/* Checks that the screen has its size and no control characters. */
static void check_screen(const char *screen, size_t width, size_t height)
{
    size_t lines = 0;

    while (*screen != '\0') {
        size_t length = strcspn(screen, "\n");
        char line[4096];

        assert_true(length < sizeof(line));
        memcpy(line, screen, length);
        line[length] = '\0';
        if (utf8_width(line) > width)
            fail_msg("wider than %zu: %s", width, line);
        for (size_t i = 0; i < length; i++)
            assert_true((unsigned char)line[i] >= ' ' && line[i] != 0x7f);
        screen += length + 1;
        lines++;
    }
    assert_int_equal(lines, height);
}

static void every_size_is_filled(void **state)
{
    static const size_t counts[] = {0, 1, 8, 64};
    static const size_t sizes[][2] = {{1, 1},     {2, 2},    {5, 3},    {20, 5},   {21, 6},
                                      {40, 4},    {39, 17},  {60, 20},  {80, 24},  {80, 100},
                                      {92, 30},   {110, 12}, {132, 50}, {165, 40}, {200, 60},
                                      {300, 100}, {1000, 7}};
    static const char *const keys[] = {"", "2", "3", "h", "/", "G", "p", "1Gx"};

    (void)state;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
            struct top_screen *shown =
                top_screen_of(counts[c] < 8 ? view_of(counts[c]) : view_of_everything(counts[c]));

            top_screen_type(shown, keys[k]);
            for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                for (int unicode = 0; unicode < 2; unicode++)
                    check_screen(top_screen_draw(shown, sizes[i][0], sizes[i][1], unicode == 1),
                                 sizes[i][0], sizes[i][1]);
            }
            top_screen_finish(shown);
        }
    }
}

static void an_empty_pool_says_so(void **state)
{
    struct top_screen *shown = top_screen_of(view_of(0));
    const char *screen = top_screen_draw(shown, 80, 24, true);

    (void)state;
    assert_shows(screen, "0 devices: 0 free, 0 leased, nobody waits  your own pool");
    assert_shows(screen, "no devices");
    assert_shows(screen, "no leases");
    assert_shows(screen, "nobody waits");
    top_screen_finish(shown);
}

static void hostile_texts_stay_in_their_columns(void **state)
{
    static const char hostile[] = "\033]0;own\a\033[2J\xe2\x80\xae\xff\n\t"
                                  "漢字e\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xcc\x81\xe2\x80\x8f|";
    struct pool_view view = view_of(2);
    struct top_screen *shown;
    const char *screen;

    (void)state;
    view_lease(&view, 12, 0, 1)->name = view_text(hostile);
    view_lease(&view, 13, 1, 2)->name = view_text("plain");
    view_claim(&view, 14, hostile, hostile)->name = view_text(hostile);
    view.snapshot.slots.items[0].device->name[0] = '\033';
    shown = top_screen_of(view);
    for (size_t width = 1; width < 130; width++) {
        check_screen(top_screen_draw(shown, width, 24, true), width, 24);
        check_screen(top_screen_draw(shown, width, 24, false), width, 24);
    }
    screen = top_screen_draw(shown, 130, 24, true);
    assert_hides(screen, "\033");
    assert_hides(screen, "\xe2\x80\xae");
    assert_shows(screen, "漢字e\xcc\x81\xcc\x81\xcc\x81");
    top_screen_finish(shown);
}

static void old_data_is_marked(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(8));

    (void)state;
    shown->picture.state = FOLLOWER_GONE;
    shown->picture.reason = "nobody listens";
    assert_shows(top_screen_draw(shown, 100, 30, true),
                 "as of 12:00:00: the daemon is gone, reconnecting (nobody listens)\n");
    assert_true(shown->grid.cells[shown->grid.width].reverse);
    shown->picture.state = FOLLOWER_SILENT;
    shown->picture.reason = "the daemon (pid 7) does not answer";
    assert_shows(top_screen_draw(shown, 100, 30, true),
                 "as of 12:00:00: the daemon (pid 7) does not answer\n");
    shown->picture.state = FOLLOWER_LIVE;
    assert_hides(top_screen_draw(shown, 100, 30, true), "as of");
    top_screen_type(shown, "p");
    assert_shows(top_screen_draw(shown, 100, 30, true), "paused at 12:00:00: p continues\n");
    top_screen_finish(shown);
}

static void problems_are_told(void **state)
{
    struct pool_view view = view_of(1);
    struct problem *problem = vector_append(&view.snapshot.problems);
    struct top_screen *shown;

    (void)state;
    assert_non_null(problem);
    problem->backend = view_text("nvidia");
    problem->message = view_text("NVML does not answer");
    shown = top_screen_of(view);
    assert_shows(top_screen_draw(shown, 80, 24, true), "\nnvidia: NVML does not answer\n");
    top_screen_finish(shown);
}

static void nothing_yet_is_said(void **state)
{
    struct top_screen *shown = top_screen_of(view_of(1));

    (void)state;
    shown->picture.view = NULL;
    assert_shows(top_screen_draw(shown, 80, 24, true), "reading the pool\n");
    top_screen_finish(shown);
}

/* Only the selected row is reversed as a whole. */
static void the_selected_row_stands_out(void **state)
{
    struct top_screen *shown = top_screen_of(view_of(4));
    const struct grid_cell *cells;

    (void)state;
    top_screen_type(shown, "jj");
    top_screen_draw(shown, 60, 10, true);
    cells = shown->grid.cells;
    for (size_t y = 3; y < 7; y++) {
        assert_int_equal(cells[y * 60].reverse, y == 5);
        assert_int_equal(cells[y * 60 + 59].reverse, y == 5);
    }
    top_screen_finish(shown);
}

static void many_devices_are_scrolled_and_mapped(void **state)
{
    struct top_screen *shown = top_screen_of(view_of_everything(64));
    const char *screen = top_screen_draw(shown, 80, 24, true);

    (void)state;
    assert_shows(screen, "\nload ");
    assert_shows(screen, "1-9 of 65");
    top_screen_type(shown, "G");
    screen = top_screen_draw(shown, 80, 24, true);
    assert_shows(screen, "57-65 of 65");
    assert_shows(screen, "nvidia63");
    assert_hides(screen, "nvidia50 ");
    /* A large screen shows more rows of the other panes. */
    assert_shows(top_screen_draw(shown, 80, 60, true), " 2 Leases 3 ");
    assert_shows(text_string(&shown->text), "\n    15  ");
    top_screen_finish(shown);
}

static void the_history_is_drawn(void **state)
{
    struct pool_view view = view_of(1);
    struct top_screen *shown;
    const char *screen;

    (void)state;
    view_load(&view, 0, 0);
    shown = top_screen_of(view);
    for (int64_t step = 2; step <= 9; step++) {
        shown->view.snapshot.slots.items[0].device->load.utilization.value = (step - 1) * 125;
        assert_int_equal(load_history_add(&shown->history, step, &shown->view), 0);
    }
    screen = top_screen_draw(shown, 132, 24, true);
    assert_shows(screen, "▁▁▂▃▄▅▆▇█");
    assert_shows(screen, "nvidia0 100% ");
    assert_shows(screen, "last 2m12s");
    assert_shows(top_screen_draw(shown, 132, 24, false), "__.:-=+*#");
    top_screen_finish(shown);
}

static void without_memory_nothing_breaks(void **state)
{
    bool refused = true;

    (void)state;
    for (unsigned long n = 1; refused; n++) {
        struct top_screen *shown = top_screen_of(view_of_everything(8));
        int code;

        top_screen_draw(shown, 120, 40, true);
        failing_allocator_start(n);
        code = control_update(&shown->control, &shown->view, &shown->users);
        if (code == 0)
            code = draw(&shown->picture, &shown->control.model, &shown->grid);
        refused = failing_allocator_stop();
        assert_true(code == 0 || (refused && code == BERTH_ERROR_MEMORY));
        top_screen_finish(shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_there_where_there_is_room),
        cmocka_unit_test(the_header_counts_claims_that_were_not_fetched),
        cmocka_unit_test(what_is_unknown_is_no_zero),
        cmocka_unit_test(memory_that_nobody_knows_of),
        cmocka_unit_test(a_small_screen_has_one_pane),
        cmocka_unit_test(a_tiny_screen_has_one_row),
        cmocka_unit_test(a_long_path_is_told_by_its_end),
        cmocka_unit_test(the_end_of_what_is_typed_is_seen),
        cmocka_unit_test(help_is_scrolled_no_further_than_its_end),
        cmocka_unit_test(ascii_will_do),
        cmocka_unit_test(every_size_is_filled),
        cmocka_unit_test(an_empty_pool_says_so),
        cmocka_unit_test(hostile_texts_stay_in_their_columns),
        cmocka_unit_test(old_data_is_marked),
        cmocka_unit_test(problems_are_told),
        cmocka_unit_test(nothing_yet_is_said),
        cmocka_unit_test(the_selected_row_stands_out),
        cmocka_unit_test(many_devices_are_scrolled_and_mapped),
        cmocka_unit_test(the_history_is_drawn),
        cmocka_unit_test(without_memory_nothing_breaks),
    };

    return cmocka_run_group_tests_name("top_draw", tests, NULL, NULL);
}
