// SPDX-License-Identifier: Apache-2.0
/* A library to preload: the clocks of one program run ahead or behind, as after a change of the
 * date or a suspend.
 *
 * CLOCK_DOUBLE names a file with two numbers of 8 bytes, in nanoseconds: they are added to
 * CLOCK_REALTIME and to CLOCK_BOOTTIME. The test may change the file at any time. Timers that are
 * set follow when the program next reads a clock. For programs with one thread that uses timers. */
// The calls replace those of the C library.
#pragma GCC visibility push(default)
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// The parameters of the C library's headers have reserved names.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)

enum { TIMERS_MAX = 1024 };

static const int64_t NANOSECONDS = 1000000000;
static const volatile int64_t *offsets;
static int64_t followed; // the offset of CLOCK_BOOTTIME that the timers follow
static struct {
    int clock;
    struct timespec when; // absolute; 0: not set
} timers[TIMERS_MAX];

static int64_t offset_of(int clock)
{
    static const int64_t none[2];
    if (offsets == NULL) {
        const char *path = getenv("CLOCK_DOUBLE");
        int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
        void *map = file < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
        offsets = map == MAP_FAILED ? none : map;
        if (file >= 0)
            close(file);
    }
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        return offsets[0];
    return clock == CLOCK_BOOTTIME ? offsets[1] : 0;
}

static void add_to(struct timespec *when, int64_t offset)
{
    int64_t sum = (int64_t)when->tv_sec * NANOSECONDS + when->tv_nsec + offset;
    if (sum < 1)
        sum = 1; // a timer of 0 would be off
    when->tv_sec = sum / NANOSECONDS;
    when->tv_nsec = sum % NANOSECONDS;
}

static void set_timer(int timer)
{
    struct itimerspec real = {.it_value = timers[timer].when};
    add_to(&real.it_value, -offset_of(timers[timer].clock));
    syscall(SYS_timerfd_settime, timer, TFD_TIMER_ABSTIME, &real, NULL);
}

static void follow_clock(void)
{
    int64_t offset = offset_of(CLOCK_BOOTTIME);
    if (offset == followed)
        return;
    followed = offset;
    for (int timer = 0; timer < TIMERS_MAX; timer++) {
        if (timers[timer].when.tv_sec != 0 && timers[timer].clock == CLOCK_BOOTTIME)
            set_timer(timer);
    }
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (syscall(SYS_clock_gettime, clock, now) != 0)
        return -1;
    follow_clock();
    int64_t offset = offset_of(clock);
    if (offset != 0)
        add_to(now, offset);
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){.tv_sec = exact.tv_sec, .tv_usec = exact.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *now)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now != NULL)
        *now = exact.tv_sec;
    return exact.tv_sec;
}

int timerfd_create(int clock, int flags)
{
    int timer = (int)syscall(SYS_timerfd_create, clock, flags);
    if (timer >= 0 && timer < TIMERS_MAX)
        timers[timer].clock = clock;
    return timer;
}

int timerfd_settime(int timer, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    if (timer >= TIMERS_MAX || (flags & TFD_TIMER_ABSTIME) == 0 || new->it_value.tv_sec == 0)
        return (int)syscall(SYS_timerfd_settime, timer, flags, new, old);
    timers[timer].when = new->it_value;
    set_timer(timer);
    return 0;
}

// NOLINTEND(readability-inconsistent-declaration-parameter-name)
