/* SPDX-License-Identifier: Apache-2.0
 *
 * The daemon's work around each wait of its loop: answers followers, closes connections, keeps
 * the journal, and sets the pool's timers. Nothing here blocks. All functions belong to the loop's
 * thread.
 */
#ifndef DAEMON_DAEMON_TURN_H
#define DAEMON_DAEMON_TURN_H

struct pool;

/* Sets the functions of the pool's timers. Must be called before a part of the pool uses one. */
void daemon_turn_init(struct pool *pool);

/* Starts to give the service manager signs of life, if it expects them. They come from within a
 * turn of the loop, so a daemon that is stuck gives none. */
void daemon_turn_start_watchdog(struct pool *pool);

/* Finishes a turn, before each wait of the loop. `context` is the pool. */
void daemon_turn_end(void *context);

/* Begins a turn, after each wait: all its events get the same time. `context` is the pool. */
void daemon_turn_begin(void *context);

#endif
