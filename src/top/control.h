/* SPDX-License-Identifier: Apache-2.0
 *
 * Handles keys. Uses neither the terminal nor the daemon: control_press() returns what its caller
 * must do.
 */
#ifndef TOP_CONTROL_H
#define TOP_CONTROL_H

#include "base/text/terminal.h"
#include "base/text/text.h"
#include "top/top_model.h"
#include "wire/wire.h"

enum control_key_kind {
    CONTROL_CHARACTER,
    CONTROL_UP,
    CONTROL_DOWN,
    CONTROL_LEFT,
    CONTROL_RIGHT,
    CONTROL_PAGE_UP,
    CONTROL_PAGE_DOWN,
    CONTROL_HOME,
    CONTROL_END,
    CONTROL_TAB,
    CONTROL_BACK_TAB,
    CONTROL_ENTER,
    CONTROL_ESCAPE,
    CONTROL_BACKSPACE,
    CONTROL_ERASE_LINE,
    CONTROL_HELP,
    CONTROL_REDRAW,
    CONTROL_INTERRUPT,
    CONTROL_SUSPEND,
    CONTROL_UNKNOWN,
};

struct control_key {
    enum control_key_kind kind;
    uint32_t character; /* for CONTROL_CHARACTER */
};

enum control_mode {
    CONTROL_WATCHING,
    CONTROL_FILTERING, /* a filter is being typed */
    CONTROL_HELPING,
    CONTROL_CONFIRMING, /* the user must confirm the command */
};

/* A command about a lease or claim. */
struct control_command {
    enum wire_type type; /* WIRE_STOP or WIRE_CANCEL; 0: nothing */
    uint64_t id;
};

struct control {
    struct top_model model;
    enum control_mode mode;
    bool paused;
    size_t help_first;
    struct control_command command; /* to confirm or to execute */
    struct text prompt;             /* "": none */
    struct text message;            /* "": none */
    enum style message_style;
    unsigned message_count; /* messages so far */
};

/* The next step of control_press()'s caller. */
enum control_result {
    CONTROL_RESULT_NONE,
    CONTROL_RESULT_EXECUTE, /* execute `command` */
    CONTROL_RESULT_QUIT,
    CONTROL_RESULT_SUSPEND, /* stop until SIGCONT */
    CONTROL_RESULT_REDRAW,  /* the whole screen */
    CONTROL_RESULT_PAUSE,   /* pause or continue: `paused` has changed */
};

/* Initializes the state. A filter that is too long is cut; NULL: none. */
void control_init(struct control *control, enum view_column column, const char *filter);
void control_finish(struct control *control);

/* Rebuilds the rows from a new view. Drops the question about a lease or claim that has ended.
 * Fails with BERTH_ERROR_MEMORY. */
int control_update(struct control *control, const struct pool_view *view, struct user_names *users);

/* Handles a key. `view` is that of the last control_update(), `uid` the user of this program.
 * Returns a control_result, or BERTH_ERROR_MEMORY. */
int control_press(struct control *control, struct control_key key, const struct pool_view *view,
                  struct user_names *users, uint32_t uid);

/* Shows a message in the last line until the next key. */
void control_show_message(struct control *control, enum style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
