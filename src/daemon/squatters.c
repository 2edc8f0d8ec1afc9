/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/squatters.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "daemon/handover.h"
#include "daemon/notices.h"
#include "daemon/process.h"
#include "daemon/processes.h"

/* The most that are watched for their end; that of others is noticed at the next look. */
enum { WATCHED_MAX = 256 };

/* What only draws may have so much of the device's memory before it counts all the same. */
#define DRAWING_MAX (UINT64_C(1) << 30)

/* Screens, and programs that look at devices, keep them in order or share them out: what computes
 * through MPS is listed by itself. */
static const char *const never_squat[] = {
    "Xorg",
    "Xwayland",
    "X",
    "gnome-shell",
    "mutter",
    "kwin_wayland",
    "kwin_x11",
    "plasmashell",
    "sway",
    "weston",
    "Hyprland",
    "xfwm4",
    "cinnamon",
    "lightdm",
    "sddm",
    "gdm-x-session",
    "systemd-logind",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
    "nv-hostengine",
    "nv-fabricmanager",
    "dcgm-exporter",
    "nvidia-smi",
    "rocm-smi",
    "amd-smi",
    "nvtop",
    "radeontop",
    "intel_gpu_top",
    "berth-probe",
};

struct squatter {
    struct watch watch; /* pidfd */
    struct pool *pool;
    struct list_link in_squatters;
    pid_t pid;
    bool seen; /* at the last look */
};

struct squatters {
    struct list watched;
    size_t count;
};

int squatters_init(struct pool *pool, struct berth_error *error)
{
    pool->squatters = calloc(1, sizeof(*pool->squatters));
    if (pool->squatters == NULL)
        return error_set_memory(error);
    list_init(&pool->squatters->watched);
    return 0;
}

static void squatter_free(struct squatter *squatter)
{
    loop_remove(&squatter->pool->loop, &squatter->watch);
    close(squatter->watch.descriptor);
    list_remove(&squatter->in_squatters);
    squatter->pool->squatters->count--;
    free(squatter);
}

void squatters_finish(struct pool *pool)
{
    if (pool->squatters == NULL)
        return;
    list_for_each (link, &pool->squatters->watched)
        squatter_free(container_of(link, struct squatter, in_squatters));
    free(pool->squatters);
    pool->squatters = NULL;
}

/* ---- Who squats ---- */

static bool is_name(const char *name, const char *word, size_t length)
{
    return strlen(name) == length && memcmp(name, word, length) == 0;
}

bool squatters_excepts(const char *command, const struct string_list *more)
{
    const char *word = command;
    char *const *name;
    size_t length;

    if (command == NULL)
        return false;
    /* /usr/lib/xorg/Xorg :0 */
    for (const char *at = command; *at != '\0' && *at != ' '; at++) {
        if (*at == '/')
            word = at + 1;
    }
    length = strcspn(word, " ");
    for (size_t i = 0; i < COUNT(never_squat); i++) {
        if (is_name(never_squat[i], word, length))
            return true;
    }
    vector_for_each (name, more) {
        if (is_name(*name, word, length))
            return true;
    }
    return false;
}

static bool squats(const struct pool *pool, const struct device *device,
                   const struct device_process *process)
{
    /* An integrated GPU is a screen's first of all; whatever runs there may draw. */
    bool may_draw = process->draws || device->kind == DEVICE_KIND_INTEGRATED;

    if (process->lease != 0)
        return false;
    if (may_draw && (!process->memory.known || process->memory.value < DRAWING_MAX))
        return false;
    return !squatters_excepts(process->command, &pool->rules.squatters_except) &&
           !(process->pid <= INT32_MAX && process_is_below((pid_t)process->pid, pool->pid));
}

static void log_squatter(struct pool *pool, const struct device *device,
                         const struct device_process *process)
{
    struct text advice = {0};

    log_begin(&pool->log, pool_now(pool), "squatted");
    device_id_append(device->id, log_value(&pool->log, "device"));
    log_number(&pool->log, "pid", process->pid);
    if (process->uid.known)
        log_number(&pool->log, "uid", process->uid.value);
    if (process->command != NULL)
        text_append(log_value(&pool->log, "command"), log_quote(process->command).text);
    if (process->container != NULL) {
        text_append(log_value(&pool->log, "container"), log_quote(process->container).text);
        device_process_advise(process, &advice);
        text_append(log_value(&pool->log, "advice"), log_quote(text_string(&advice)).text);
        text_finish(&advice);
    }
    log_end(&pool->log);
}

static void block(struct pool *pool, uint32_t slot, const struct device_process *first)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    struct slot_view view;

    engine_get_slot(pool->engine, slot, &view);
    /* What runs where another pool's lease is, is that pool's to judge. */
    if (first == NULL || pool->rules.squatters == SQUATTING_IGNORED ||
        (view.blocks & BLOCK_ELSEWHERE) != 0) {
        engine_unblock(pool->engine, slot, BLOCK_SQUATTED);
        return;
    }
    engine_block(pool->engine, slot, BLOCK_SQUATTED);
    if ((view.blocks & BLOCK_SQUATTED) != 0)
        return;
    log_squatter(pool, device, first);
    notice_squatter(pool, slot, first);
}

void squatters_judge(struct pool *pool, uint32_t slot)
{
    const struct device *device = &engine_machine(pool->engine)->devices.items[slot];
    const struct device_process *first = NULL;
    struct device_process *process;
    bool lingers = false;

    vector_for_each (process, engine_device_processes(pool->engine, slot)) {
        process->squats = squats(pool, device, process);
        if (process->squats && first == NULL)
            first = process;
        lingers = lingers || process_lingers(pool, process);
    }
    block(pool, slot, first);
    if (lingers)
        handover_need(pool, slot, HANDOVER_LINGERS);
    else
        handover_done(pool, slot, HANDOVER_LINGERS);
}

/* ---- Watching them ---- */

/* The devices that it was on are looked at again. */
static void squatter_ended(struct watch *watch, uint32_t events)
{
    struct squatter *squatter = container_of(watch, struct squatter, watch);
    struct pool *pool = squatter->pool;
    uint64_t pid = (uint64_t)squatter->pid;

    (void)events;
    squatter_free(squatter);
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        if (device_process_find(engine_device_processes(pool->engine, slot), pid) != NULL)
            handover_need(pool, slot, HANDOVER_LOOK);
    }
}

static struct squatter *find(struct squatters *squatters, pid_t pid)
{
    list_for_each (link, &squatters->watched) {
        struct squatter *squatter = container_of(link, struct squatter, in_squatters);

        if (squatter->pid == pid)
            return squatter;
    }
    return NULL;
}

static void watch(struct pool *pool, pid_t pid)
{
    struct squatter *squatter = find(pool->squatters, pid);
    int descriptor;

    if (squatter != NULL) {
        squatter->seen = true;
        return;
    }
    descriptor = pool->squatters->count >= WATCHED_MAX ? -1 : process_open(pid, 0);
    squatter = descriptor < 0 ? NULL : calloc(1, sizeof(*squatter));
    if (squatter == NULL) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    *squatter = (struct squatter){
        .watch = {.descriptor = descriptor, .ready = squatter_ended},
        .pool = pool,
        .pid = pid,
        .seen = true,
    };
    if (loop_add(&pool->loop, &squatter->watch, EPOLLIN, NULL) < 0) {
        close(descriptor);
        free(squatter);
        return;
    }
    list_append(&pool->squatters->watched, &squatter->in_squatters);
    pool->squatters->count++;
}

/* Those that keep a device from being granted are watched, others not any more. */
static void watch_all(struct pool *pool)
{
    list_for_each (link, &pool->squatters->watched)
        container_of(link, struct squatter, in_squatters)->seen = false;
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++) {
        const struct device_process *process;

        vector_for_each (process, engine_device_processes(pool->engine, slot)) {
            if (process->pid <= INT32_MAX && (process->squats || process_lingers(pool, process)))
                watch(pool, (pid_t)process->pid);
        }
    }
    list_for_each (link, &pool->squatters->watched) {
        struct squatter *squatter = container_of(link, struct squatter, in_squatters);

        if (!squatter->seen)
            squatter_free(squatter);
    }
}

void squatters_judge_all(struct pool *pool)
{
    for (uint32_t slot = 0; slot < engine_machine(pool->engine)->devices.count; slot++)
        squatters_judge(pool, slot);
    watch_all(pool);
}
