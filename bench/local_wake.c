/* SPDX-License-Identifier: Apache-2.0 */
#include "local_wake.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "measure.h"

/* Turns before the clock starts: by then both threads run and sleep in turn. */
enum { WARM_UP = 100 };

struct game {
    void (*play)(struct game *game, unsigned player);
    struct berth_pool *pool;
    _Atomic uint32_t may_go[2];

    /* Owned by the player whose turn it is. */
    uint64_t turns;
    uint64_t last_turn;
    unsigned last_player;
    int64_t begin;
    int64_t end;
    uint64_t sleeps;
};

struct player {
    struct game *game;
    unsigned number;
};

/* Returns how often the threads of this process went to sleep so far. */
static uint64_t count_sleeps(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

/* Counts a turn; returns false for the last turn of each player. */
static bool take_turn(struct game *game)
{
    game->turns++;
    if (game->turns == WARM_UP) {
        game->sleeps = count_sleeps();
        game->begin = now();
    } else if (game->turns == game->last_turn) {
        game->end = now();
        game->sleeps = count_sleeps() - game->sleeps;
    }
    return game->turns < game->last_turn;
}

static void play_with_pool(struct game *game, unsigned player)
{
    bool goes_on = true;
    do {
        struct berth_lease lease;
        if (berth_claim(game->pool, NULL, BERTH_FOR_EVER, &lease, NULL) != 0)
            give_up("a claim failed");
        if (game->last_player != player) {
            game->last_player = player;
            goes_on = take_turn(game);
        } else {
            /* The other thread was not waiting at the release: no wake-up, so no turn. */
            while (berth_pool_pending(game->pool) == 0)
                sched_yield();
        }
        if (berth_release(game->pool, lease, NULL) != 0)
            give_up("a release failed");
    } while (goes_on);
}

static void play_with_futexes(struct game *game, unsigned player)
{
    _Atomic uint32_t *mine = &game->may_go[player], *other = &game->may_go[1 - player];
    bool goes_on;
    do {
        while (atomic_load(mine) == 0)
            syscall(SYS_futex, mine, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
        atomic_store(mine, 0);
        goes_on = take_turn(game);
        atomic_store(other, 1);
        syscall(SYS_futex, other, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    } while (goes_on);
}

static void *player_thread(void *data)
{
    const struct player *player = data;
    player->game->play(player->game, player->number);
    return NULL;
}

static int64_t run_game(void *data, uint64_t count)
{
    struct game *game = data;
    game->turns = 0;
    game->last_turn = WARM_UP + count;
    game->last_player = UINT_MAX;
    atomic_store(&game->may_go[0], 1);
    atomic_store(&game->may_go[1], 0);

    pthread_t threads[2];
    struct player players[2] = {{game, 0}, {game, 1}};
    for (unsigned i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, player_thread, &players[i]) != 0)
            give_up("cannot start a thread");
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);

    /* A turn without a sleep before it was no wake-up. */
    if ((double)game->sleeps < 0.95 * (double)count)
        give_up("expected a sleep for each turn, got %llu for %llu",
                (unsigned long long)game->sleeps, (unsigned long long)count);
    return game->end - game->begin;
}

/* Pins both threads to one CPU, where waking one does not preempt the other: each turn is then one
 * call to wake, one to sleep and one switch. On two CPUs this would measure idle states. */
static double time_of_game(struct game *game)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) != 1)
        give_up("expected one CPU to run on: taskset -c 0 COMMAND");
    const struct sched_param parameters = {.sched_priority = 0};
    if (sched_setscheduler(0, SCHED_BATCH, &parameters) != 0)
        give_up("cannot set SCHED_BATCH");
    return quickest(run_game, game);
}

double time_of_wake(struct berth_pool *pool)
{
    struct game game = {.play = play_with_pool, .pool = pool};
    return time_of_game(&game);
}

double time_of_futex_wake(void)
{
    struct game game = {.play = play_with_futexes};
    return time_of_game(&game);
}
