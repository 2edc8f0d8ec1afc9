/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor_holder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "base/system/program.h"
#include "base/text/quantity.h"
#include "cli/exit_codes.h"
#include "cli/machine_source.h"
#include "cli/output.h"
#include "context/context_driver.h"

/* The first context can take long if the driver was not in use. */
#define READY_TIMEOUT DURATION_MINUTE
/* The time that the holder has to end by itself before it gets SIGKILL. */
#define END_TIMEOUT (5 * DURATION_SECOND)

enum { OUTPUT_MAX = 64 * 1024 };

/* ---- The program under the lease ---- */

/* Returns the library that shows devices of this vendor within a lease; NULL: berth uses none. */
static const struct driver_ops *find_library(enum vendor vendor)
{
    switch (vendor) {
    case VENDOR_NVIDIA:
        return &cuda_driver;
    case VENDOR_AMD:
    case VENDOR_INTEL:
        return &opencl_driver;
    default:
        return NULL;
    }
}

/* Finds the device with the vendor's library. */
static int find_native(const struct device *device, size_t slot, struct driver **ret_driver,
                       struct native_device *ret_native, struct berth_error *error)
{
    const struct driver_ops *library = find_library(device->id.vendor);
    const struct context_target target = {
        .id = device->id,
        .uuid = device->uuid,
        .pci = device->pci,
        .is_partition = device->parent != NULL,
        .slot = slot,
    };
    int code;

    if (library == NULL)
        return error_set(error, BERTH_ERROR_NOT_FOUND, "no library lists devices of this vendor");
    code = context_driver_get(library, ret_driver, error);
    return code < 0 ? code : library->find(*ret_driver, &target, ret_native, error);
}

/* Creates a context on the leased device, which lasts as long as the process. */
static void use_device(const struct device *device, size_t slot)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct native_context context = {0};
    struct native_device native = {0};
    struct driver *driver = NULL;
    int status;

    if (find_native(device, slot, &driver, &native, &error) < 0 || driver == NULL) {
        printf(driver == NULL ? "nothing %s\n" : "failed %s\n", error.message);
        return;
    }
    status = driver->ops->create(driver, native, 0, &context);
    if (status == 0)
        printf("context\n");
    else
        printf("failed cannot create a context: status %d of %s\n", status, driver->ops->name);
}

int doctor_holder_run(void)
{
    const char *own = getenv("BERTH_DEVICES");
    const char *lease = getenv("BERTH_LEASE");
    struct berth_error error = BERTH_ERROR_INIT;
    struct machine_source source = {.without_processes = true};
    struct machine_report report = {0};
    const struct device *device;
    char byte;

    if (own == NULL || lease == NULL || machine_source_open(&source, NULL, NULL, &error) < 0 ||
        machine_source_scan(&source, &report, &error) < 0)
        return output_refusal(&error);
    vector_for_each (device, &report.machine.devices) {
        struct device_id_text id = device_id_format(device->id);
        size_t slot = (size_t)(device - report.machine.devices.items);
        struct native_device native = {0};
        struct driver *driver;

        if (find_native(device, slot, &driver, &native, NULL) == 0)
            printf("visible %s\n", id.text);
        if (strcmp(id.text, own) == 0)
            use_device(device, slot);
    }
    printf("ready %ld %s\n", (long)getpid(), lease);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    machine_report_finish(&report);
    machine_source_close(&source);
    return EXIT_GOOD;
}

/* ---- The process that started it ---- */

/* Runs in the child: becomes `berth run`. */
static void become_holder(int input, int output, const char *device)
{
    char program[PATH_MAX];
    const char *arguments[] = {"berth", "run", "--nonblock", "--name", "berth-doctor",  "--device",
                               device,  "--",  program,      "doctor", "--hold-device", NULL};

    program_find("berth", program, sizeof(program));
    if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
        dup2(output, STDERR_FILENO) < 0)
        _exit(EXIT_BERTH);
    execv(program, (char *const *)arguments);
    _exit(EXIT_NO_COMMAND);
}

static int spawn_holder(struct doctor_holder *holder, struct device_id device,
                        struct berth_error *error)
{
    struct device_id_text name = device_id_format(device);
    int input[2];
    int output[2];

    if (pipe2(input, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "cannot create a pipe");
    if (pipe2(output, O_CLOEXEC) < 0) {
        int number = errno;

        close(input[0]);
        close(input[1]);
        return error_set_errno(error, number, "cannot create a pipe");
    }
    holder->child = fork();
    if (holder->child == 0)
        become_holder(input[0], output[1], name.text);
    close(input[0]);
    close(output[1]);
    holder->input = input[1];
    holder->output = output[0];
    return holder->child < 0 ? error_set_errno(error, errno, "cannot create a process") : 0;
}

static void keep_text(char **place, const char *value)
{
    free(*place);
    *place = strdup(value);
}

/* Reads "4711 12": the pid of the holder and its lease. */
static void read_ready(struct doctor_holder *holder, const char *numbers)
{
    char *end;
    long pid = strtol(numbers, &end, 10);

    if (end == numbers || pid <= 0)
        return;
    holder->pid = (pid_t)pid;
    holder->lease = strtoull(end, NULL, 10);
}

/* Handles one line of the holder. Returns whether it is ready. */
static bool handle_line(struct doctor_holder *holder, const char *line)
{
    if (strncmp(line, "visible ", 8) == 0)
        string_list_append(&holder->visible, line + 8);
    else if (strncmp(line, "nothing ", 8) == 0)
        keep_text(&holder->nothing, line + 8);
    else if (strncmp(line, "failed ", 7) == 0)
        keep_text(&holder->failed, line + 7);
    else if (strncmp(line, "ready ", 6) == 0)
        read_ready(holder, line + 6);
    return holder->pid != 0;
}

/* Handles the whole lines of the output. Returns whether the holder is ready. */
static bool handle_output(struct doctor_holder *holder)
{
    bool ready = false;
    char *end;

    while (!ready && (end = strchr(holder->lines.bytes + holder->handled, '\n')) != NULL) {
        *end = '\0';
        ready = handle_line(holder, holder->lines.bytes + holder->handled);
        *end = '\n';
        holder->handled = (size_t)(end + 1 - holder->lines.bytes);
    }
    return ready;
}

/* Reads the output up to the time `until`. Returns 1, 0 at its end, or a negative errno. */
static int read_output(struct doctor_holder *holder, int64_t until)
{
    struct pollfd waiting = {.fd = holder->output, .events = POLLIN};
    int64_t left = (until - clock_now()) / (DURATION_SECOND / 1000);
    char bytes[4096];
    int ready = poll(&waiting, 1, left > 0 ? (int)left : 0);
    ssize_t got;

    if (ready == 0 || holder->lines.length > OUTPUT_MAX)
        return -ETIMEDOUT;
    got = ready < 0 ? -1 : read(holder->output, bytes, sizeof(bytes));
    if (got < 0)
        return errno == EINTR ? 1 : -errno;
    text_append_bytes(&holder->lines, bytes, (size_t)got);
    return text_failed(&holder->lines) ? -ENOMEM : got > 0;
}

/* Waits until the child has ended. Returns false at the time `until`. */
static bool reap_child(struct doctor_holder *holder, int64_t until, int *ret_status)
{
    while (clock_now() < until) {
        if (waitpid(holder->child, ret_status, WNOHANG) != 0) {
            holder->child = 0;
            return true;
        }
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return false;
}

/* Returns the error code for a holder whose output has ended. */
static int find_start_error(struct doctor_holder *holder)
{
    int status = 0;
    bool is_refused = reap_child(holder, clock_after(clock_now(), END_TIMEOUT), &status) &&
                      WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_GRANTED;

    return is_refused ? BERTH_ERROR_BUSY : BERTH_ERROR_IO;
}

/* Writes an error with the last line of the output. `number` is of read_output(). */
static int fail_start(struct doctor_holder *holder, int number, struct berth_error *error)
{
    const char *lines = text_string(&holder->lines);
    size_t length = strlen(lines);
    const char *last;

    if (number == -ETIMEDOUT)
        return error_set(error, BERTH_ERROR_IO, "the test program was not ready after %s",
                         quantity_format_duration(READY_TIMEOUT).text);
    while (length > 0 && lines[length - 1] == '\n')
        length--;
    last = memrchr(lines, '\n', length);
    last = last == NULL ? lines : last + 1;
    return error_set(error, number == 0 ? find_start_error(holder) : BERTH_ERROR_IO, "%.*s",
                     (int)(lines + length - last), length == 0 ? "the test program ended" : last);
}

int doctor_holder_start(struct doctor_holder *holder, struct device_id device,
                        struct berth_error *error)
{
    int64_t until = clock_after(clock_now(), READY_TIMEOUT);
    int code;

    *holder = (struct doctor_holder){.input = -1, .output = -1};
    code = spawn_holder(holder, device, error);
    if (code < 0)
        return code;
    do {
        code = read_output(holder, until);
        if (code > 0 && holder->lines.length > 0 && handle_output(holder))
            return 0;
    } while (code > 0);
    return fail_start(holder, code, error);
}

bool doctor_holder_shows(const struct doctor_holder *holder, struct device_id device)
{
    char *const *shown;

    vector_for_each (shown, &holder->visible) {
        if (strcmp(*shown, device_id_format(device).text) == 0)
            return true;
    }
    return false;
}

/* Waits until the child has closed its output and ended. Returns false at the time `until`. */
static bool wait_for_end(struct doctor_holder *holder, int64_t until)
{
    int status;

    while (read_output(holder, until) > 0)
        continue;
    return reap_child(holder, until, &status);
}

void doctor_holder_finish(struct doctor_holder *holder)
{
    if (holder->input >= 0)
        close(holder->input);
    if (holder->child > 0 && !wait_for_end(holder, clock_after(clock_now(), END_TIMEOUT))) {
        kill(holder->child, SIGKILL);
        waitpid(holder->child, NULL, 0);
    }
    if (holder->output >= 0)
        close(holder->output);
    string_list_finish(&holder->visible);
    free(holder->nothing);
    free(holder->failed);
    text_finish(&holder->lines);
    *holder = (struct doctor_holder){.input = -1, .output = -1};
}
