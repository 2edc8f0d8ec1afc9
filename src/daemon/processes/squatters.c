/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/processes/squatters.h"

#include <string.h>

#include "base/count.h"
#include "base/string_list.h"
#include "daemon/processes/process_attribution.h"
#include "model/machine/device.h"

/* A process that only draws counts all the same if it has this much of the device's memory. */
#define DRAWING_MAX (UINT64_C(1) << 30)

/* Programs that draw screens, and programs that inspect, maintain or share devices. Clients of MPS
 * are listed by themselves. */
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

bool squatters_has(const struct device *device, const struct device_process *process,
                   const struct string_list *more, pid_t daemon)
{
    /* An integrated GPU is the screen's first of all: every process on it may draw. */
    bool may_draw = process->draws || device->kind == DEVICE_KIND_INTEGRATED;

    if (process->lease != 0)
        return false;
    if (may_draw && (!process->memory.known || process->memory.value < DRAWING_MAX))
        return false;
    return !squatters_excepts(process->command, more) &&
           !process_attribution_is_below(process, daemon);
}
