/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/devices/cdi_arguments.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quote.h"
#include "cli/machine_source.h"

const struct choice cdi_arguments_names[] = {
    {"cdi", CDI_ARGUMENTS_CDI},
    {"nodes", CDI_ARGUMENTS_NODES},
    {NULL, 0},
};

/* What a program in the container is told of its lease, and by what the pool knows it again. */
static const char *const passed_variables[] = {
    "BERTH_LEASE",
    "BERTH_SOCKET",
    "BERTH_DEVICES",
    "BERTH_CPUS",
    "BERTH_REPLICA",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "BERTH_BACKEND",
    "NCCL_SOCKET_IFNAME",
    "GLOO_SOCKET_IFNAME",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
};

/* Whether a shell leaves it as it is. */
static bool is_plain(const char *value, size_t length)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./:,=@%";

    return strspn(value, plain) >= length;
}

static void append_variables(struct text *out)
{
    for (size_t i = 0; i < COUNT(passed_variables); i++) {
        const char *value = getenv(passed_variables[i]);

        if (value == NULL)
            continue;
        text_append_format(out, "--env=%s", passed_variables[i]);
        if (is_plain(value, strlen(value)))
            text_append_format(out, "=%s", value);
        text_append_char(out, '\n');
    }
    /* Else a runtime of nvidia's adds every GPU to an image that is made for CUDA. */
    text_append(out, "--env=NVIDIA_VISIBLE_DEVICES=void\n");
}

/* Appends a --device for each part of a list, which is below `prefix` on this machine. */
static int append_devices(const char *list, char separator, const char *prefix, struct text *out,
                          struct berth_error *error)
{
    const char separators[] = {separator, '\0'};

    while (*list != '\0') {
        size_t length = strcspn(list, separators);

        if (length == 0 || !is_plain(list, length) || !is_plain(prefix, strlen(prefix)))
            return error_set(error, BERTH_ERROR_INVALID,
                             "expected a device that a shell leaves as it is, got %s",
                             quote_bytes(list, length).text);
        text_append(out, "--device=");
        if (*prefix != '\0') {
            text_append(out, prefix);
            text_append_bytes(out, list, length);
            text_append_char(out, ':');
        }
        text_append_bytes(out, list, length);
        text_append_char(out, '\n');
        list += length + (list[length] == separator);
    }
    return 0;
}

static const char *get_variable(const char *name)
{
    const char *value = getenv(name);

    return value == NULL ? "" : value;
}

static int append_nodes(struct text *out, struct berth_error *error)
{
    char *prefix;
    int code = machine_source_sysroot(&prefix, error);

    if (code < 0)
        return code;
    code = append_devices(get_variable("BERTH_DEVICE_NODES"), ':', prefix, out, error);
    free(prefix);
    return code;
}

/* Who shares a device by MPS talks to its server through pipes and shared memory. Without them a
 * program would have the device beside the others, and no limits. */
static int append_mps(struct text *out, struct berth_error *error)
{
    const char *pipes = get_variable("CUDA_MPS_PIPE_DIRECTORY");

    if (*pipes == '\0')
        return 0;
    if (!is_plain(pipes, strlen(pipes)) || strchr(pipes, ':') != NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected a CUDA_MPS_PIPE_DIRECTORY that a shell leaves as it is, got %s",
                         quote(pipes).text);
    text_append_format(out, "--ipc=host\n--volume=%s:%s\n", pipes, pipes);
    return 0;
}

/* Devices of which the lease has no file would be missing without a word. */
static int check_lease(enum cdi_arguments how, struct berth_error *error)
{
    const char *devices = getenv("BERTH_DEVICES");

    /* It is there and empty where a command runs on the CPU for want of a device. */
    if (devices == NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected to be within a lease, as in berth run -- sh -c 'exec podman run "
                         "$(berth cdi --arguments cdi) ...', got no BERTH_DEVICES");
    if (how == CDI_ARGUMENTS_NODES && *devices != '\0' &&
        *get_variable("BERTH_DEVICE_NODES") == '\0')
        return error_set(error, BERTH_ERROR_INVALID,
                         "expected device files of %s, got none in BERTH_DEVICE_NODES",
                         quote(devices).text);
    return 0;
}

int cdi_arguments_write(enum cdi_arguments how, struct text *out, struct berth_error *error)
{
    int code = check_lease(how, error);

    if (code == 0 && how == CDI_ARGUMENTS_CDI)
        code = append_devices(get_variable("BERTH_CDI_DEVICES"), ',', "", out, error);
    else if (code == 0)
        code = append_nodes(out, error);
    if (code == 0)
        code = append_mps(out, error);
    if (code < 0)
        return code;
    append_variables(out);
    return text_failed(out) ? error_set_memory(error) : 0;
}
