/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes made-up snapshots of pools as text and as JSON.
 */
#ifndef TESTS_POOL_PICTURES_H
#define TESTS_POOL_PICTURES_H

#include "cli/status/status_output.h"
#include "support/failing_allocator.h"
#include "support/views/check_lines.h"
#include "support/views/pool_views.h"
#include "view/pool_json.h"

static const struct terminal narrow = {.width = 80, .unicode = true};
static const struct terminal wide __attribute__((unused)) = {.width = 140, .unicode = true};
static const struct terminal none = {0};

/* The address of the pool. A test may change it. */
static struct pool_address address = {.socket = (char *)"/run/somewhere/berth.sock", .own = true};

/* Returns a view as text, which the caller finishes. Finishes the view. */
static inline struct text picture_of(struct pool_view *view, struct terminal terminal)
{
    struct user_names users = {0};
    struct status_picture picture = {
        .now = VIEW_NOW, .view = view, .address = &address, .users = &users, .terminal = terminal};
    struct text out = {0};

    assert_int_equal(pool_view_index(view, NULL), 0);
    status_write(&picture, &out);
    assert_false(text_failed(&out));
    user_names_finish(&users);
    pool_view_finish(view);
    return out;
}

static inline void check_picture(struct pool_view view, struct terminal terminal,
                                 const char *wanted)
{
    struct text out = picture_of(&view, terminal);

    assert_string_equal(text_string(&out), wanted);
    text_finish(&out);
}

static inline struct text json_of(struct pool_view *view, enum json_layout layout)
{
    struct user_names users = {0};
    struct text out = {0};

    view->about.socket = strdup(address.socket);
    assert_int_equal(pool_view_index(view, NULL), 0);
    pool_json_write(view, &users, layout, &out);
    assert_false(text_failed(&out));
    user_names_finish(&users);
    pool_view_finish(view);
    return out;
}

static inline void check_json(struct pool_view view, const char *wanted)
{
    struct text out = json_of(&view, JSON_COMPACT);

    if (strstr(text_string(&out), wanted) == NULL)
        fail_msg("no %s in %s", wanted, text_string(&out));
    text_finish(&out);
}

/* Writes a view with each allocation refused once. The text must fail, and nothing may leak. */
static inline void check_without_memory(struct pool_view make(void))
{
    const struct terminal terminals[] = {narrow, none};

    for (size_t i = 0; i < 3; i++) {
        bool refused = true;

        for (unsigned long n = 1; refused; n++) {
            struct pool_view view = make();
            struct user_names users = {0};
            struct status_picture picture = {.now = VIEW_NOW,
                                             .view = &view,
                                             .address = &address,
                                             .users = &users,
                                             .terminal = terminals[i % 2]};
            struct text out = {0};
            int code;

            user_names_find(&users, 4000000000);
            user_names_find(&users, 4000000001);
            user_names_find(&users, 4000000002);
            failing_allocator_start(n);
            code = pool_view_index(&view, NULL);
            if (code == 0 && i == 2)
                pool_json_write(&view, &users, JSON_INDENTED, &out);
            else if (code == 0)
                status_write(&picture, &out);
            refused = failing_allocator_stop();
            assert_int_equal(code < 0 || text_failed(&out), refused);
            text_finish(&out);
            user_names_finish(&users);
            pool_view_finish(&view);
        }
    }
}

#endif
