/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/watch.h"

#include "base/error.h"
#include "base/system/clock.h"
#include "base/text/quantity.h"
#include "cli/exit_codes.h"
#include "cli/output.h"
#include "cli/screen.h"

/* Times are shown in seconds, so a screen is drawn at least this often. */
#define REDRAW_INTERVAL DURATION_SECOND

struct watch_state {
    const struct watch_subject *subject;
    bool on_screen;
    bool has_shown;
    int64_t drawn_at; /* when the screen was drawn last; 0: never */
};

/* Returns whether the screen must be drawn although nothing has changed. */
static bool is_redraw_due(const struct watch_state *state)
{
    return screen_is_dirty() || state->drawn_at == 0 ||
           clock_now() - state->drawn_at >= REDRAW_INTERVAL;
}

/* Draws or prints the picture. Returns an exit code. */
static int show_picture(struct watch_state *state)
{
    const struct watch_subject *subject = state->subject;
    struct text picture = {0};
    struct text out = {0};
    int code = EXIT_GOOD;

    subject->write(subject->context, state->on_screen, &picture);
    if (picture.length > 0 || text_failed(&picture)) {
        if (!state->on_screen && !subject->json && state->has_shown)
            text_append_char(&out, '\n');
        text_append(&out, text_string(&picture));
        out.failed |= picture.failed;
        code = state->on_screen ? screen_draw(&out) : output_write(&out);
        state->has_shown = true;
        state->drawn_at = clock_now();
    }
    text_finish(&picture);
    text_finish(&out);
    return code;
}

/* Waits for the next update or redraw. Returns false when standard output is closed. */
static bool wait_for_update(const struct watch_state *state)
{
    int descriptor = -1;
    int64_t time = state->subject->wait(state->subject->context, &descriptor);
    int64_t left = state->drawn_at + REDRAW_INTERVAL - clock_now();

    if (state->on_screen && state->drawn_at != 0 && left < time)
        time = left;
    return screen_pause(descriptor, time);
}

/* Runs the loop. Returns an exit code, which counts only if `error` is not set. */
static int run_loop(struct watch_state *state, struct berth_error *error)
{
    const struct watch_subject *subject = state->subject;
    int code = EXIT_GOOD;

    do {
        int changed = subject->update(subject->context, state->on_screen, error);

        if (changed < 0)
            return EXIT_GOOD;
        if (changed > 0 || (state->on_screen && is_redraw_due(state)))
            code = show_picture(state);
    } while (code == EXIT_GOOD && wait_for_update(state));
    return code;
}

int watch_run(const struct watch_subject *subject, const char *verb)
{
    struct watch_state state = {
        .subject = subject,
        .on_screen = !subject->json && screen_is_supported(),
    };
    struct berth_error error = BERTH_ERROR_INIT;
    int code;

    if (state.on_screen)
        screen_enter();
    code = run_loop(&state, &error);
    if (state.on_screen)
        screen_leave();
    if (error.code == 0)
        return code;
    error_wrap(&error, error.code, "%s", verb);
    return output_refusal(&error);
}
