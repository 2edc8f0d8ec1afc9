/* SPDX-License-Identifier: Apache-2.0 */
/* ncurses declares functions for wide characters only with this. */
#define NCURSES_WIDECHAR 1
#include "top/display.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>
#include <wchar.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"

/* How long to wait after Escape for the rest of a key's sequence, in milliseconds. */
enum { ESCAPE_TIMEOUT = 50, DEFAULT_WIDTH = 80, DEFAULT_HEIGHT = 24 };

static struct {
    SCREEN *screen;
    bool unicode;
    bool colour;
    attr_t styles[STYLE_BAD + 1];
} ours;

/* Sets the locale. If the user's locale is not installed or has no UTF-8, C.UTF-8 can still show
 * Unicode. */
static void find_locale(bool wants_unicode)
{
    const char *codeset;

    if (setlocale(LC_CTYPE, "") == NULL || strcmp(nl_langinfo(CODESET), "UTF-8") != 0) {
        if (wants_unicode)
            setlocale(LC_CTYPE, "C.UTF-8");
    }
    codeset = nl_langinfo(CODESET);
    ours.unicode = wants_unicode && strcmp(codeset, "UTF-8") == 0;
}

/* Chooses the attributes of each style. Without colours, only the weight differs. */
static void choose_styles(void)
{
    static const short colours[] = {
        [STYLE_GOOD] = COLOR_GREEN, [STYLE_WARNING] = COLOR_YELLOW, [STYLE_BAD] = COLOR_RED};

    ours.styles[STYLE_PLAIN] = A_NORMAL;
    ours.styles[STYLE_STRONG] = A_BOLD;
    ours.styles[STYLE_FAINT] = ours.colour ? A_DIM : A_NORMAL;
    ours.styles[STYLE_GOOD] = A_NORMAL;
    ours.styles[STYLE_WARNING] = A_BOLD;
    ours.styles[STYLE_BAD] = A_BOLD;
    if (!ours.colour)
        return;
    start_color();
    for (short style = STYLE_GOOD; style <= STYLE_BAD; style++) {
        /* Keep the user's background, light or dark. */
        init_pair(style, colours[style], use_default_colors() == OK ? -1 : COLOR_BLACK);
        ours.styles[style] = (attr_t)COLOR_PAIR(style) | (style == STYLE_GOOD ? 0 : A_BOLD);
    }
}

int display_check(struct berth_error *error)
{
    const char *kind = getenv("TERM");
    bool can_do_it;
    int result;

    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
        return error_set(
            error, BERTH_ERROR_INVALID,
            "standard input and output must be a terminal ('berth status' works without)");
    if (kind == NULL || kind[0] == '\0')
        return error_set(error, BERTH_ERROR_INVALID,
                         "TERM: expected the type of the terminal, got nothing");
    if (setupterm(NULL, STDOUT_FILENO, &result) != OK)
        return error_set(error, BERTH_ERROR_INVALID,
                         "TERM: expected a terminal that ncurses knows, got %s", quote(kind).text);
    can_do_it = tigetstr("cup") != NULL && tigetstr("clear") != NULL;
    del_curterm(cur_term);
    if (!can_do_it)
        return error_set(error, BERTH_ERROR_INVALID,
                         "TERM: expected a terminal with cursor movement, got %s",
                         quote(kind).text);
    return 0;
}

/* Resets the handlers that ncurses installs. The main loop reads signals from a signalfd, and the
 * parent must see which signal ended the program. */
static void restore_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGTSTP, SIGWINCH};

    for (size_t i = 0; i < COUNT(numbers); i++) {
        struct sigaction action;

        if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            signal(numbers[i], SIG_DFL);
    }
}

int display_open(struct berth_error *error)
{
    struct terminal terminal = terminal_detect(STDOUT_FILENO);

    find_locale(terminal.unicode);
    ours.screen = newterm(NULL, stdout, stdin);
    if (ours.screen == NULL)
        return error_set(error, BERTH_ERROR_INVALID, "cannot show a full screen on this terminal");
    restore_signals();
    ours.colour = terminal.colour && has_colors();
    choose_styles();
    /* In raw mode, Ctrl-C and Ctrl-Z are keys: the terminal driver sends no signals. */
    raw();
    noecho();
    nonl();
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    set_escdelay(ESCAPE_TIMEOUT);
    curs_set(0);
    return 0;
}

void display_close(void)
{
    if (ours.screen == NULL)
        return;
    endwin();
    delscreen(ours.screen);
    ours.screen = NULL;
}

void display_suspend(void)
{
    endwin();
}

void display_resume(void)
{
    /* Other programs may have written to the terminal in the meantime. */
    clearok(curscr, TRUE);
    doupdate();
}

bool display_is_unicode(void)
{
    return ours.unicode;
}

void display_measure(size_t *ret_width, size_t *ret_height)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 || size.ws_row == 0) {
        size.ws_col = COLS > 0 ? (unsigned short)COLS : DEFAULT_WIDTH;
        size.ws_row = LINES > 0 ? (unsigned short)LINES : DEFAULT_HEIGHT;
    }
    if (is_term_resized(size.ws_row, size.ws_col))
        resizeterm(size.ws_row, size.ws_col);
    *ret_width = size.ws_col;
    *ret_height = size.ws_row;
}

/* Returns the character, or '?' if the C library assumes another width, which would shift the rest
 * of the row. */
static wchar_t shown_character(uint32_t character)
{
    unsigned width = utf8_character_width(character);

    if (character < 0x80)
        return (wchar_t)character;
    return wcwidth((wchar_t)character) == (int)width ? (wchar_t)character : L'?';
}

static void show_cell(const struct grid_cell *cell, int x, int y)
{
    attr_t attributes = ours.styles[cell->style] | (cell->reverse ? A_REVERSE : 0);
    wchar_t characters[GRID_MARKS_MAX + 2] = {shown_character(cell->character)};
    size_t count = 1;
    cchar_t shown;

    for (size_t i = 0; i < GRID_MARKS_MAX && cell->marks[i] != 0; i++) {
        if (wcwidth((wchar_t)cell->marks[i]) == 0)
            characters[count++] = (wchar_t)cell->marks[i];
    }
    if (setcchar(&shown, characters, attributes & ~(attr_t)A_COLOR,
                 (short)PAIR_NUMBER((int)attributes), NULL) == OK)
        mvadd_wch(y, x, &shown);
    else
        mvaddch(y, x, '?');
}

void display_show(const struct grid *grid, bool redraw_all)
{
    erase();
    for (size_t y = 0; y < grid->height; y++) {
        for (size_t x = 0; x < grid->width; x++) {
            const struct grid_cell *cell = &grid->cells[y * grid->width + x];

            if (cell->character == 0 ||
                (cell->character == ' ' && !cell->reverse && cell->marks[0] == 0))
                continue;
            show_cell(cell, (int)x, (int)y);
        }
    }
    if (redraw_all)
        clearok(stdscr, TRUE);
    refresh();
}

/* Maps the result of get_wch() to a kind of key. */
static enum control_key_kind find_key_kind(int result, wint_t found)
{
    static const struct {
        wint_t found;
        bool is_key;
        enum control_key_kind kind;
    } rows[] = {
        {KEY_UP, true, CONTROL_UP},
        {KEY_DOWN, true, CONTROL_DOWN},
        {KEY_LEFT, true, CONTROL_LEFT},
        {KEY_RIGHT, true, CONTROL_RIGHT},
        {KEY_PPAGE, true, CONTROL_PAGE_UP},
        {KEY_NPAGE, true, CONTROL_PAGE_DOWN},
        {KEY_HOME, true, CONTROL_HOME},
        {KEY_END, true, CONTROL_END},
        {KEY_BTAB, true, CONTROL_BACK_TAB},
        {KEY_ENTER, true, CONTROL_ENTER},
        {KEY_BACKSPACE, true, CONTROL_BACKSPACE},
        {KEY_F(1), true, CONTROL_HELP},
        {'\t', false, CONTROL_TAB},
        {'\r', false, CONTROL_ENTER},
        {'\n', false, CONTROL_ENTER},
        {0x1b, false, CONTROL_ESCAPE},
        {0x7f, false, CONTROL_BACKSPACE},
        {'\b', false, CONTROL_BACKSPACE},
        {0x15, false, CONTROL_ERASE_LINE},
        {0x0c, false, CONTROL_REDRAW},
        {0x03, false, CONTROL_INTERRUPT},
        {0x1c, false, CONTROL_INTERRUPT},
        {0x1a, false, CONTROL_SUSPEND},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        if (rows[i].found == found && rows[i].is_key == (result == KEY_CODE_YES))
            return rows[i].kind;
    }
    if (result == KEY_CODE_YES || found > 0x10FFFF || (found >= 0xD800 && found <= 0xDFFF) ||
        utf8_is_control((uint32_t)found))
        return CONTROL_UNKNOWN;
    return CONTROL_CHARACTER;
}

bool display_next_key(struct control_key *ret_key)
{
    wint_t found;
    int result;

    /* ncurses reports a new size as a key. Skip it: it must not answer a question. */
    do {
        result = get_wch(&found);
    } while (result == KEY_CODE_YES && found == KEY_RESIZE);
    if (result == ERR)
        return false;
    *ret_key = (struct control_key){.kind = find_key_kind(result, found)};
    if (ret_key->kind == CONTROL_CHARACTER)
        ret_key->character = (uint32_t)found;
    return true;
}

bool display_is_gone(void)
{
    int waiting = 0;

    return ioctl(STDIN_FILENO, FIONREAD, &waiting) < 0 || waiting == 0;
}
