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

/* The variables of a lease that the container gets. BERTH_LEASE lets the pool recognize the
 * container's processes. */
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

/* Returns whether the value has no characters that are special to a shell. */
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
    /* Otherwise NVIDIA's container runtime adds every GPU to a CUDA image. */
    text_append(out, "--env=NVIDIA_VISIBLE_DEVICES=void\n");
}

/* Appends a --device for each item of a list. On the host, the files are below `prefix`. */
static int append_devices(const char *list, char separator, const char *prefix, struct text *out,
                          struct berth_error *error)
{
    const char separators[] = {separator, '\0'};

    while (*list != '\0') {
        size_t length = strcspn(list, separators);

        if (length == 0 || !is_plain(list, length) || !is_plain(prefix, strlen(prefix)))
            return error_set(error, BERTH_ERROR_INVALID,
                             "expected a device without special characters, got %s",
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

/* Appends the options that let a program reach the MPS server, through its pipes and shared memory.
 * Without them the program would use the device directly, without limits. */
static int append_mps(struct text *out, struct berth_error *error)
{
    const char *pipes = get_variable("CUDA_MPS_PIPE_DIRECTORY");

    if (*pipes == '\0')
        return 0;
    if (!is_plain(pipes, strlen(pipes)) || strchr(pipes, ':') != NULL)
        return error_set(
            error, BERTH_ERROR_INVALID,
            "CUDA_MPS_PIPE_DIRECTORY: expected a path without special characters, got %s",
            quote(pipes).text);
    text_append_format(out, "--ipc=host\n--volume=%s:%s\n", pipes, pipes);
    return 0;
}

/* Checks that there is a lease and, for nodes, that its devices have files. */
static int check_lease(enum cdi_arguments how, struct berth_error *error)
{
    const char *devices = getenv("BERTH_DEVICES");

    /* The variable is empty if the command runs on the CPU (--or-cpu). */
    if (devices == NULL)
        return error_set(error, BERTH_ERROR_INVALID,
                         "not inside a lease (no BERTH_DEVICES); use it as in: berth run -- sh -c "
                         "'exec podman run $(berth cdi --arguments cdi) ...'");
    if (how == CDI_ARGUMENTS_NODES && *devices != '\0' &&
        *get_variable("BERTH_DEVICE_NODES") == '\0')
        return error_set(error, BERTH_ERROR_INVALID,
                         "BERTH_DEVICE_NODES: expected device files of %s, got none",
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
