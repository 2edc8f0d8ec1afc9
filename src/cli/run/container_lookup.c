/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/container_lookup.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/system/container.h"
#include "base/system/process_container.h"
#include "base/system/process_stat.h"
#include "base/text/quote.h"

enum { PREFIX_MIN = 4 };

void container_lookup_finish(struct container_process_list *list)
{
    struct container_process *process;

    vector_for_each (process, list)
        free(process->container);
    vector_finish(list);
}

/* ---- The container ---- */

static bool is_digits(const char *text)
{
    return text[strspn(text, "0123456789abcdef")] == '\0';
}

static bool begins_with(const char *container, const char *wanted)
{
    return strlen(wanted) >= PREFIX_MIN && is_digits(wanted) && is_digits(container) &&
           strncmp(container, wanted, strlen(wanted)) == 0;
}

/* Returns how many characters of the two ids must be shown to tell them apart. */
static int distinct_length(const char *one, const char *other)
{
    int shown = 0;

    while (one[shown] != '\0' && one[shown] == other[shown])
        shown++;
    return shown < container_shown_length(one) ? container_shown_length(one) : shown + 1;
}

/* Returns the whole id or name of the wanted container, or NULL with BERTH_ERROR_NOT_FOUND if none
 * or several match. */
static const char *find_container(const struct container_process_list *list, const char *wanted,
                                  struct berth_error *error)
{
    const struct container_process *process;
    const char *found = NULL;
    const char *other = NULL;

    vector_for_each (process, list) {
        if (strcmp(process->container, wanted) == 0)
            return process->container;
        if (!begins_with(process->container, wanted))
            continue;
        if (found == NULL)
            found = process->container;
        else if (strcmp(found, process->container) != 0)
            other = process->container;
    }
    if (found == NULL)
        error_set(error, BERTH_ERROR_NOT_FOUND,
                  "no running container has the id %s ('podman ps' and 'docker ps' list ids)",
                  quote(wanted).text);
    if (other != NULL)
        error_set(error, BERTH_ERROR_NOT_FOUND,
                  "several containers have ids that begin with %s: %.*s, %.*s", quote(wanted).text,
                  distinct_length(found, other), found, distinct_length(found, other), other);
    return other == NULL ? found : NULL;
}

/* ---- The first process ---- */

static bool is_in_container(const struct container_process_list *list, pid_t pid,
                            const char *container)
{
    const struct container_process *process;

    vector_for_each (process, list) {
        if (process->pid == pid && strcmp(process->container, container) == 0)
            return true;
    }
    return false;
}

static bool is_older(const struct container_process *process, const struct container_process *other)
{
    if (process->started != other->started)
        return process->started < other->started;
    return process->pid < other->pid;
}

int container_lookup_choose(const struct container_process_list *list, const char *wanted,
                            pid_t *ret_pid, struct berth_error *error)
{
    const struct container_process *first = NULL;
    const struct container_process *process;
    const char *container = find_container(list, wanted, error);

    if (container == NULL)
        return BERTH_ERROR_NOT_FOUND;
    vector_for_each (process, list) {
        if (strcmp(process->container, container) == 0 &&
            !is_in_container(list, process->parent, container) &&
            (first == NULL || is_older(process, first)))
            first = process;
    }
    /* Only possible if processes change their parents during the scan. */
    if (first == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND,
                         "cannot find the first process of container %.*s",
                         container_shown_length(container), container);
    *ret_pid = first->pid;
    return 0;
}

/* ---- The machine's processes ---- */

/* Adds the process if it exists and is in a container. */
static int add_process(struct container_process_list *list, pid_t pid, struct berth_error *error)
{
    struct text container = {0};
    uint64_t started = process_stat_started(pid);
    struct container_process *process;
    int code = 0;

    if (started != 0 && process_container(pid, &container)) {
        process = vector_append(list);
        if (process == NULL)
            code = error_set_memory(error);
        else
            *process = (struct container_process){
                .pid = pid,
                .parent = process_stat_parent(pid),
                .started = started,
                .container = text_detach(&container),
            };
    }
    if (text_failed(&container))
        code = error_set_memory(error);
    text_finish(&container);
    return code;
}

static int find_container_processes(struct container_process_list *list, struct berth_error *error)
{
    DIR *directory = opendir("/proc");
    const struct dirent *entry;
    int code = 0;

    if (directory == NULL)
        return error_set(error, BERTH_ERROR_IO, "cannot open /proc: %s", strerror(errno));
    while (code == 0 && (entry = readdir(directory)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0)
            code = add_process(list, pid, error);
    }
    closedir(directory);
    return code;
}

int container_lookup_first_process(const char *wanted, pid_t *ret_pid, struct berth_error *error)
{
    struct container_process_list list = {0};
    int code = find_container_processes(&list, error);

    if (code == 0)
        code = container_lookup_choose(&list, wanted, ret_pid, error);
    container_lookup_finish(&list);
    return code;
}
