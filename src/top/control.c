/* SPDX-License-Identifier: Apache-2.0 */
#include "top/control.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/text/utf8.h"
#include "top/draw.h"
#include "top/lease_labels.h"
#include "view/view_facts.h"

/* The arguments of control_press(). */
struct key_context {
    struct control *control;
    const struct pool_view *view;
    struct user_names *users;
    uint32_t uid;
};

static void set_filter(struct top_model *model, const char *filter)
{
    size_t length = strlen(filter);

    if (length > TOP_FILTER_MAX)
        length = utf8_boundary(filter, TOP_FILTER_MAX);
    memmove(model->filter, filter, length);
    memset(model->filter + length, 0, sizeof(model->filter) - length);
}

void control_init(struct control *control, enum view_column column, const char *filter)
{
    *control = (struct control){0};
    top_model_init(&control->model, column);
    if (filter != NULL)
        set_filter(&control->model, filter);
}

void control_finish(struct control *control)
{
    top_model_finish(&control->model);
    text_finish(&control->prompt);
    text_finish(&control->message);
}

void control_show_message(struct control *control, enum style style, const char *format, ...)
{
    va_list arguments;

    text_clear(&control->message);
    va_start(arguments, format);
    text_append_list(&control->message, format, arguments);
    va_end(arguments);
    control->message_style = style;
    control->message_count++;
}

static const struct claim_info *find_claim(const struct pool_view *view, uint64_t id)
{
    const struct claim_info *claim;

    vector_for_each (claim, &view->snapshot.claims) {
        if (claim->id == id)
            return claim;
    }
    return NULL;
}

static void start_watching(struct control *control)
{
    control->mode = CONTROL_WATCHING;
    text_clear(&control->prompt);
}

int control_update(struct control *control, const struct pool_view *view, struct user_names *users)
{
    uint64_t id = control->command.id;

    if (control->mode == CONTROL_CONFIRMING && control->command.type == WIRE_STOP &&
        view_find_lease(view, id) == NULL) {
        start_watching(control);
        control_show_message(control, STYLE_PLAIN, "lease %" PRIu64 " has ended", id);
    }
    if (control->mode == CONTROL_CONFIRMING && control->command.type == WIRE_CANCEL &&
        find_claim(view, id) == NULL) {
        start_watching(control);
        control_show_message(control, STYLE_PLAIN, "claim %" PRIu64 " no longer waits", id);
    }
    return top_model_update(&control->model, view, users);
}

static int update_rows(const struct key_context *context)
{
    return control_update(context->control, context->view, context->users);
}

/* Appends the question, with the owner if it is another user. The important part comes first: a
 * narrow screen cuts the rest, and names may contain anything. */
static void append_question(struct text *prompt, const struct key_context *context,
                            const char *verb, const char *thing, uint64_t id, uint32_t uid)
{
    if (uid == context->uid)
        text_append_format(prompt, "%s %s %" PRIu64 "? y/N  ", verb, thing, id);
    else
        text_append_format(prompt, "%s %s's %s %" PRIu64 ", not yours? y/N  ", verb,
                           user_names_find(context->users, uid), thing, id);
}

static void ask_to_release(const struct key_context *context, const struct lease_info *lease)
{
    struct control *control = context->control;

    if (lease->end != 0 || lease->draining) {
        control_show_message(control, STYLE_WARNING, "lease %" PRIu64 " is ending already",
                             lease->id);
        return;
    }
    text_clear(&control->prompt);
    append_question(&control->prompt, context, "Release", "lease", lease->id, lease->uid);
    text_append_format(&control->prompt, "(%s, %s, ", lease_label_job(lease),
                       user_names_find(context->users, lease->uid));
    lease_label_append_devices(&control->prompt, &lease->devices);
    text_append_char(&control->prompt, ')');
    control->command = (struct control_command){WIRE_STOP, lease->id};
    control->mode = CONTROL_CONFIRMING;
}

static void ask_to_cancel(const struct key_context *context, const struct claim_info *claim)
{
    struct control *control = context->control;
    const char *job = claim->name != NULL ? claim->name : claim->command;

    text_clear(&control->prompt);
    append_question(&control->prompt, context, "Cancel", "claim", claim->id, claim->uid);
    text_append_format(&control->prompt, "(%s, %s, %s)", job == NULL ? "-" : job,
                       user_names_find(context->users, claim->uid),
                       claim->request == NULL ? "-" : claim->request);
    control->command = (struct control_command){WIRE_CANCEL, claim->id};
    control->mode = CONTROL_CONFIRMING;
}

/* Asks the user to confirm x (release) or c (cancel). If the selected row needs the other key, says
 * so. */
static void ask_to_confirm(const struct key_context *context, char key)
{
    struct control *control = context->control;
    const struct top_row *row = top_model_selected(&control->model, control->model.pane);

    if (row != NULL && row->claim != TOP_NOTHING && key == 'c')
        ask_to_cancel(context, &context->view->snapshot.claims.items[row->claim]);
    else if (row != NULL && row->claim != TOP_NOTHING)
        control_show_message(control, STYLE_WARNING, "a claim holds no devices: c cancels it");
    else if (row != NULL && row->lease != TOP_NOTHING && key == 'x')
        ask_to_release(context, &context->view->snapshot.leases.items[row->lease]);
    else if (row != NULL && row->lease != TOP_NOTHING)
        control_show_message(control, STYLE_WARNING, "a lease does not wait: x releases it");
    else
        control_show_message(control, STYLE_WARNING, "no %s is selected",
                             key == 'x' ? "lease" : "claim");
}

static int press_confirming(const struct key_context *context, struct control_key key)
{
    struct control *control = context->control;

    start_watching(control);
    if (key.kind == CONTROL_CHARACTER && (key.character == 'y' || key.character == 'Y'))
        return CONTROL_RESULT_EXECUTE;
    control_show_message(control, STYLE_PLAIN, "%s %" PRIu64 " was not changed",
                         control->command.type == WIRE_STOP ? "lease" : "claim",
                         control->command.id);
    return CONTROL_RESULT_NONE;
}

static void show_filter_prompt(struct control *control)
{
    text_clear(&control->prompt);
    text_append_format(&control->prompt, "Show rows with: %s_", control->model.filter);
}

static void type_filter(struct top_model *model, uint32_t character)
{
    struct text filter = {0};

    text_append(&filter, model->filter);
    if (!utf8_is_control(character) && character != UTF8_REPLACEMENT)
        utf8_append(&filter, character);
    if (!text_failed(&filter) && filter.length <= TOP_FILTER_MAX)
        set_filter(model, text_string(&filter));
    text_finish(&filter);
}

static int press_filtering(const struct key_context *context, struct control_key key)
{
    struct control *control = context->control;
    struct top_model *model = &control->model;
    size_t length = strlen(model->filter);

    switch (key.kind) {
    case CONTROL_CHARACTER:
        type_filter(model, key.character);
        break;
    case CONTROL_BACKSPACE:
        if (length > 0)
            model->filter[utf8_boundary(model->filter, length - 1)] = '\0';
        set_filter(model, model->filter);
        break;
    case CONTROL_ERASE_LINE:
        set_filter(model, "");
        break;
    case CONTROL_ESCAPE:
        set_filter(model, "");
        start_watching(control);
        return update_rows(context);
    case CONTROL_ENTER:
        start_watching(control);
        return CONTROL_RESULT_NONE;
    case CONTROL_UP:
    case CONTROL_DOWN:
        top_model_move(model, context->view, key.kind == CONTROL_UP ? -1 : 1);
        return CONTROL_RESULT_NONE;
    default:
        return CONTROL_RESULT_NONE;
    }
    show_filter_prompt(control);
    return update_rows(context);
}

static int press_helping(const struct key_context *context, struct control_key key)
{
    struct control *control = context->control;

    if (key.kind == CONTROL_DOWN || key.kind == CONTROL_PAGE_DOWN) {
        control->help_first++; /* draw_help_first() limits it */
    } else if (key.kind == CONTROL_UP || key.kind == CONTROL_PAGE_UP) {
        control->help_first -= control->help_first > 0;
    } else {
        start_watching(control);
        control->help_first = 0;
    }
    return CONTROL_RESULT_NONE;
}

static void select_pane(struct top_model *model, int pane)
{
    model->pane = (enum top_pane)((pane + PANE_COUNT) % PANE_COUNT);
}

static int press_character(const struct key_context *context, uint32_t character)
{
    struct control *control = context->control;
    struct top_model *model = &control->model;
    struct top_list *list = &model->lists[model->pane];

    switch (character) {
    case 'q':
    case 'Q':
        return CONTROL_RESULT_QUIT;
    case '1':
    case '2':
    case '3':
        select_pane(model, (int)character - '1');
        return CONTROL_RESULT_NONE;
    case 's':
    case '>':
    case '<':
        top_model_choose_column(model, character == '<' ? -1 : 1);
        return update_rows(context);
    case 'r':
        list->reversed = !list->reversed;
        return update_rows(context);
    case '/':
        control->mode = CONTROL_FILTERING;
        show_filter_prompt(control);
        return CONTROL_RESULT_NONE;
    case 'p':
    case ' ':
        control->paused = !control->paused;
        return CONTROL_RESULT_PAUSE;
    case 'x':
    case 'c':
        ask_to_confirm(context, (char)character);
        return CONTROL_RESULT_NONE;
    default:
        return CONTROL_RESULT_NONE;
    }
}

/* Returns the kind of a key. Some letters stand for other keys, such as j for Down. */
static enum control_key_kind resolve_key_kind(struct control_key key)
{
    if (key.kind != CONTROL_CHARACTER)
        return key.kind;
    switch (key.character) {
    case 'j':
        return CONTROL_DOWN;
    case 'k':
        return CONTROL_UP;
    case 'g':
        return CONTROL_HOME;
    case 'G':
        return CONTROL_END;
    case 'h':
    case '?':
        return CONTROL_HELP;
    default:
        return CONTROL_CHARACTER;
    }
}

/* Moves the selection. */
static void select_row(const struct key_context *context, enum control_key_kind kind)
{
    struct top_model *model = &context->control->model;
    long page = (long)model->lists[model->pane].page;
    long rows = kind == CONTROL_UP || kind == CONTROL_DOWN    ? 1
                : kind == CONTROL_HOME || kind == CONTROL_END ? LONG_MAX
                : page > 0                                    ? page
                                                              : 1;

    if (kind == CONTROL_UP || kind == CONTROL_HOME || kind == CONTROL_PAGE_UP)
        rows = -rows;
    top_model_move(model, context->view, rows);
}

static int press_watching(const struct key_context *context, struct control_key key)
{
    struct control *control = context->control;
    struct top_model *model = &control->model;

    switch (resolve_key_kind(key)) {
    case CONTROL_CHARACTER:
        return press_character(context, key.character);
    case CONTROL_UP:
    case CONTROL_DOWN:
    case CONTROL_PAGE_UP:
    case CONTROL_PAGE_DOWN:
    case CONTROL_HOME:
    case CONTROL_END:
        select_row(context, resolve_key_kind(key));
        break;
    case CONTROL_TAB:
    case CONTROL_RIGHT:
        select_pane(model, (int)model->pane + 1);
        break;
    case CONTROL_BACK_TAB:
    case CONTROL_LEFT:
        select_pane(model, (int)model->pane - 1);
        break;
    case CONTROL_HELP:
        control->mode = CONTROL_HELPING;
        break;
    case CONTROL_ESCAPE:
        set_filter(model, "");
        return update_rows(context);
    default:
        break;
    }
    return CONTROL_RESULT_NONE;
}

int control_press(struct control *control, struct control_key key, const struct pool_view *view,
                  struct user_names *users, uint32_t uid)
{
    const struct key_context context = {control, view, users, uid};

    text_clear(&control->message);
    if (key.kind == CONTROL_INTERRUPT)
        return CONTROL_RESULT_QUIT;
    if (key.kind == CONTROL_SUSPEND)
        return CONTROL_RESULT_SUSPEND;
    if (key.kind == CONTROL_REDRAW)
        return CONTROL_RESULT_REDRAW;
    switch (control->mode) {
    case CONTROL_FILTERING:
        return press_filtering(&context, key);
    case CONTROL_HELPING:
        return press_helping(&context, key);
    case CONTROL_CONFIRMING:
        return press_confirming(&context, key);
    default:
        return press_watching(&context, key);
    }
}
