/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/process_stat.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { STAT_SIZE = 1024, STARTED_FIELD = 22, STATUS_FIELD = 52, BY_SIGNAL = 128 };

/* What Linux 6.15 and later tell of a process that was waited for; their headers may be older. */
struct exit_information {
    uint64_t mask;
    uint64_t control_group;
    uint32_t pids[3];
    uint32_t credentials[8];
    int32_t exit_code;
};
_Static_assert(sizeof(struct exit_information) == 64, "as the kernel's struct pidfd_info began");

#define GET_INFORMATION _IOWR(0xFF, 11, struct exit_information)
#define HAS_EXIT_CODE   (UINT64_C(1) << 3)

int process_open(pid_t pid, uint64_t started)
{
    int descriptor = pid <= 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);

    if (descriptor < 0)
        return -1;
    if (process_has_ended(descriptor) || (started != 0 && process_stat_started(pid) != started)) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

int process_open_peer(int connection, pid_t pid)
{
    int descriptor = -1;
    socklen_t length = sizeof(descriptor);

    if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &length) == 0)
        return descriptor;
    /* An older kernel; a number that was used again since it connected is as good as impossible. */
    return errno == ENOPROTOOPT ? process_open(pid, 0) : -1;
}

bool process_has_ended(int descriptor)
{
    struct pollfd poller = {.fd = descriptor, .events = POLLIN};

    return poll(&poller, 1, 0) > 0;
}

/* Of one that is still to be waited for; returns whether that is so. */
static bool read_status(pid_t pid, uint64_t started, int *ret_status)
{
    char buffer[STAT_SIZE];
    char path[64];
    const char *fields;

    /* To whom it does not tell such things it tells zeros. This tells those apart: for who may know
     * there is no program any more, which is to be asked before it is gone altogether. */
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    if (readlink(path, buffer, sizeof(buffer)) >= 0 || errno != ENOENT)
        return false;
    fields = process_stat_fields(pid, buffer, sizeof(buffer));
    if (fields == NULL || !process_stat_has_ended(fields) ||
        process_stat_number(fields, STARTED_FIELD) != started)
        return false;
    *ret_status = (int)process_stat_number(fields, STATUS_FIELD);
    return true;
}

int process_exit_code(int descriptor, pid_t pid, uint64_t started)
{
    struct exit_information information = {.mask = HAS_EXIT_CODE};
    int status;

    if (!read_status(pid, started, &status)) {
        if (ioctl(descriptor, GET_INFORMATION, &information) < 0 ||
            (information.mask & HAS_EXIT_CODE) == 0)
            return -1;
        status = information.exit_code;
    }
    return WIFSIGNALED(status) ? BY_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

void process_signal(int descriptor, int number)
{
    syscall(SYS_pidfd_send_signal, descriptor, number, NULL, 0);
}

/* Adds the numbers of a line; returns how many there were, or BERTH_ERROR_MEMORY. */
static int add_numbers(const char *line, size_t max, struct number_list *list)
{
    char *end;
    int count = 0;

    for (size_t i = 0; i < max; i++, line = end) {
        unsigned long number = strtoul(line, &end, 10);
        uint32_t *place = end == line || number > UINT32_MAX ? NULL : vector_append(list);

        if (end == line || number > UINT32_MAX)
            break;
        if (place == NULL)
            return BERTH_ERROR_MEMORY;
        *place = (uint32_t)number;
        count++;
    }
    return count;
}

int process_credentials(pid_t pid, uint32_t *ret_uid, struct number_list *ret_groups)
{
    struct number_list uid = {0};
    char path[64];
    char *line = NULL;
    size_t size = 0;
    int code = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return BERTH_ERROR_NOT_FOUND;
    while (code >= 0 && getline(&line, &size, file) > 0) {
        if (strncmp(line, "Uid:", strlen("Uid:")) == 0)
            code = add_numbers(line + strlen("Uid:"), 1, &uid);
        else if (strncmp(line, "Gid:", strlen("Gid:")) == 0)
            code = add_numbers(line + strlen("Gid:"), 1, ret_groups);
        else if (strncmp(line, "Groups:", strlen("Groups:")) == 0)
            code = add_numbers(line + strlen("Groups:"), SIZE_MAX, ret_groups);
    }
    fclose(file);
    free(line);
    if (code >= 0)
        code = uid.count == 0 ? BERTH_ERROR_NOT_FOUND : 0;
    if (code == 0)
        *ret_uid = uid.items[0];
    vector_finish(&uid);
    return code;
}
