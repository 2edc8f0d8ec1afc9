/* SPDX-License-Identifier: Apache-2.0
 *
 * A double of nvidia-cuda-mps-control. It follows NVIDIA's "Multi-Process Service"
 * (docs.nvidia.com/deploy/mps) and nvidia-cuda-mps-control(1):
 *
 * - `-d` starts the control daemon in the background, `-f` in the foreground. Without either, it
 *   reads commands from standard input, one per line, and prints the answers.
 * - CUDA_MPS_PIPE_DIRECTORY has its pipes and sockets, CUDA_MPS_LOG_DIRECTORY its control.log and
 *   server.log. The defaults are /tmp/nvidia-mps and /var/log/nvidia-mps.
 * - A second daemon in the same directory reports that an instance is already running.
 * - When a client connects, the control daemon starts a server as the client's user. A daemon that
 *   does not run as root serves its own user only.
 * - Commands: get_server_list, start_server -uid UID, get_client_list PID,
 *   shutdown_server PID [-f], get_/set_default_active_thread_percentage,
 *   get_/set_default_device_pinned_mem_limit, and quit [-t TIMEOUT], which waits for the
 *   clients, or for TIMEOUT seconds.
 * - Without a control daemon a command fails: "Cannot find MPS control daemon process".
 * - The log lines are those of drivers of 2024 and later.
 *
 * It is stricter than the original after a crash: an existing socket means that an instance is
 * running. The option `--client` is an addition: it does what a CUDA program does when it starts,
 * prints "server PID", and stays connected until its input ends.
 *
 * Faults are in a file beside the program, named like the program with ".faults", one per line:
 * "fail TEXT" and "hang" at the start; later "ignore-quit", "refuse-quit", "crash COMMAND", and
 * "leave-session", which puts servers into their own sessions.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Sent after the answer. Without it, the daemon has crashed. */
#define DONE "done\n"

enum {
    CLIENTS_MAX = 48,
    LINE_LENGTH_MAX = 512,
    PATH_LENGTH_MAX = 512,
    DEVICES_MAX = 8,
    ANSWER_MAX = 16 * 1024
};

/* A connected process: a client of the device, or one that sends a command. */
struct peer {
    int socket; /* -1: none */
    pid_t pid;
    bool is_client;
    bool waits_for_end; /* it sent quit */
};

static struct control {
    const char *faults;
    const char *pipes;
    const char *logs;
    char path[PATH_LENGTH_MAX]; /* of the socket */
    int listener;
    struct peer peers[CLIENTS_MAX];
    pid_t server; /* 0: none */
    char percentage[32];
    char limits[DEVICES_MAX][32];
    bool is_ending;
    int64_t end_at; /* 0: when the last client is gone */
} control = {.percentage = "100.0"};

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static const char *variable(const char *name, const char *ordinary)
{
    const char *value = getenv(name);

    return value == NULL || *value == '\0' ? ordinary : value;
}

/* Returns whether the file of faults has a line that begins with these words; `rest` gets the rest
 * of the line. */
static bool has_fault(const char *words, char rest[LINE_LENGTH_MAX])
{
    FILE *file = fopen(control.faults, "re");
    char line[LINE_LENGTH_MAX];
    bool found = false;

    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, words, strlen(words)) == 0 &&
                (line[strlen(words)] == '\0' || line[strlen(words)] == ' ');
        if (found)
            snprintf(rest, LINE_LENGTH_MAX, "%s",
                     line + strlen(words) + (line[strlen(words)] == ' '));
    }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Writes a line to a log, and to standard output if it is open. */
static void say(const char *file, const char *who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(const char *file, const char *who, const char *format, ...)
{
    char path[PATH_LENGTH_MAX];
    char words[LINE_LENGTH_MAX + PATH_LENGTH_MAX];
    char date[32];
    struct tm parts;
    struct timespec time;
    FILE *log;
    va_list arguments;

    clock_gettime(CLOCK_REALTIME, &time);
    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", localtime_r(&time.tv_sec, &parts));
    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    snprintf(path, sizeof(path), "%s/%s", control.logs, file);
    log = fopen(path, "ae");
    if (log != NULL) {
        fprintf(log, "[%s.%03ld %s %5d] %s\n", date, time.tv_nsec / 1000000, who, (int)getpid(),
                words);
        fclose(log);
    }
    printf("[%s.%03ld %s %5d] %s\n", date, time.tv_nsec / 1000000, who, (int)getpid(), words);
    fflush(stdout);
}

/* ---- Servers ---- */

static void be_server(void)
{
    char rest[LINE_LENGTH_MAX];

    prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
    if (has_fault("leave-session", rest))
        setsid();
    close(control.listener);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (control.peers[i].socket >= 0)
            close(control.peers[i].socket);
    }
    say("server.log", "Server", "Start");
    for (;;)
        pause();
}

static void start_server(unsigned uid)
{
    if (control.server != 0 && kill(control.server, 0) == 0)
        return;
    control.server = fork();
    if (control.server == 0)
        be_server();
    say("control.log", "Control", "Starting new server %d for user %u", (int)control.server, uid);
}

static void end_server(void)
{
    if (control.server != 0)
        kill(control.server, SIGTERM);
    /* SIGCHLD is ignored, so waitpid() waits for the end and then fails. */
    while (control.server != 0 && waitpid(control.server, NULL, 0) < 0 && errno == EINTR)
        ;
    control.server = 0;
}

static int count_clients(void)
{
    int count = 0;

    for (int i = 0; i < CLIENTS_MAX; i++)
        count += control.peers[i].socket >= 0 && control.peers[i].is_client;
    return count;
}

/* ---- Commands ---- */

static void answer(struct peer *peer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void answer(struct peer *peer, const char *format, ...)
{
    char words[LINE_LENGTH_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    if (send(peer->socket, words, strlen(words), MSG_NOSIGNAL) < 0)
        say("control.log", "Control", "cannot answer: %s", strerror(errno));
}

static void hang_up(struct peer *peer)
{
    close(peer->socket);
    *peer = (struct peer){.socket = -1};
}

/* Returns the rest of the line if it begins with these words. */
static const char *after(const char *line, const char *words)
{
    size_t length = strlen(words);

    if (strncmp(line, words, length) != 0 || (line[length] != '\0' && line[length] != ' '))
        return NULL;
    return line[length] == ' ' ? line + length + 1 : line + length;
}

static void list_clients(struct peer *peer, pid_t server)
{
    if (server != control.server || server == 0) {
        answer(peer, "Server %d not found\n", (int)server);
        return;
    }
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (control.peers[i].socket >= 0 && control.peers[i].is_client)
            answer(peer, "%d\n", (int)control.peers[i].pid);
    }
}

static void set_limit(struct peer *peer, const char *arguments)
{
    char *size;
    unsigned long device = strtoul(arguments, &size, 10);

    if (size == arguments || *size != ' ' || device >= DEVICES_MAX)
        answer(peer, "Invalid arguments\n");
    else
        snprintf(control.limits[device], sizeof(control.limits[device]), "%s", size + 1);
}

static void quit(struct peer *peer, const char *arguments)
{
    char rest[LINE_LENGTH_MAX];
    const char *seconds;

    if (has_fault("refuse-quit", rest)) {
        answer(peer, "failed %s\n", rest);
        hang_up(peer);
        return;
    }
    peer->waits_for_end = true;
    if (has_fault("ignore-quit", rest))
        return;
    control.is_ending = true;
    seconds = after(arguments, "-t");
    if (seconds != NULL)
        control.end_at = now() + 1000 * strtol(seconds, NULL, 10);
}

static void obey(struct peer *peer, const char *line)
{
    char rest[LINE_LENGTH_MAX];
    const char *words;

    if (has_fault("crash", rest) && after(line, rest) != NULL)
        abort();
    if (after(line, "get_server_list") != NULL) {
        if (control.server != 0 && kill(control.server, 0) == 0)
            answer(peer, "%d\n", (int)control.server);
    } else if ((words = after(line, "start_server -uid")) != NULL) {
        start_server((unsigned)strtoul(words, NULL, 10));
    } else if ((words = after(line, "get_client_list")) != NULL) {
        list_clients(peer, (pid_t)strtol(words, NULL, 10));
    } else if (after(line, "get_default_active_thread_percentage") != NULL) {
        answer(peer, "%s\n", control.percentage);
    } else if ((words = after(line, "set_default_active_thread_percentage")) != NULL) {
        snprintf(control.percentage, sizeof(control.percentage), "%.1f", strtod(words, NULL));
        answer(peer, "%s\n", control.percentage);
    } else if ((words = after(line, "get_default_device_pinned_mem_limit")) != NULL) {
        answer(peer, "%s\n", control.limits[strtoul(words, NULL, 10) % DEVICES_MAX]);
    } else if ((words = after(line, "set_default_device_pinned_mem_limit")) != NULL) {
        set_limit(peer, words);
    } else if (after(line, "shutdown_server") != NULL) {
        end_server();
    } else if ((words = after(line, "quit")) != NULL) {
        quit(peer, words);
        return;
    } else {
        answer(peer, "Unrecognized command\n");
    }
    answer(peer, DONE);
    hang_up(peer);
}

/* ---- The daemon ---- */

static void take_line(struct peer *peer, char *line)
{
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, "client") != 0) {
        obey(peer, line);
        return;
    }
    peer->is_client = true;
    say("control.log", "Control", "NEW CLIENT %d from user %u", (int)peer->pid,
        (unsigned)geteuid());
    start_server((unsigned)geteuid());
    answer(peer, "server %d\n", (int)control.server);
}

static void accept_peer(void)
{
    int socket = accept4(control.listener, NULL, NULL, SOCK_CLOEXEC);
    struct ucred credentials = {0};
    socklen_t length = sizeof(credentials);

    if (socket < 0)
        return;
    say("control.log", "Control", "Accepting connection...");
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) < 0 ||
        (geteuid() != 0 && credentials.uid != geteuid()) || control.is_ending) {
        say("control.log", "Control", "User did not send valid credentials");
        close(socket);
        return;
    }
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (control.peers[i].socket < 0) {
            control.peers[i] = (struct peer){.socket = socket, .pid = credentials.pid};
            return;
        }
    }
    close(socket);
}

static void read_peer(struct peer *peer)
{
    char line[LINE_LENGTH_MAX];
    ssize_t length = recv(peer->socket, line, sizeof(line) - 1, 0);

    if (length <= 0) {
        hang_up(peer);
        return;
    }
    line[length] = '\0';
    take_line(peer, line);
}

static void end(void)
{
    end_server();
    unlink(control.path);
    for (int i = 0; i < CLIENTS_MAX; i++) {
        if (control.peers[i].socket >= 0 && control.peers[i].waits_for_end)
            answer(&control.peers[i], DONE);
    }
    say("control.log", "Control", "Exit");
    exit(EXIT_SUCCESS);
}

static void serve(void)
{
    for (;;) {
        struct pollfd polled[CLIENTS_MAX + 1] = {{.fd = control.listener, .events = POLLIN}};

        if (control.is_ending &&
            (count_clients() == 0 || (control.end_at != 0 && now() >= control.end_at)))
            end();
        for (int i = 0; i < CLIENTS_MAX; i++)
            polled[i + 1] = (struct pollfd){.fd = control.peers[i].socket, .events = POLLIN};
        poll(polled, CLIENTS_MAX + 1, control.is_ending ? 20 : -1);
        for (int i = 0; i < CLIENTS_MAX; i++) {
            if (polled[i + 1].fd >= 0 && polled[i + 1].revents != 0)
                read_peer(&control.peers[i]);
        }
        if (polled[0].revents != 0)
            accept_peer();
    }
}

static void write_pid(void)
{
    char path[PATH_LENGTH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/nvidia-cuda-mps-control.pid", control.pipes);
    file = fopen(path, "we");
    if (file == NULL)
        return;
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
}

static int listen_there(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(control.path) >= sizeof(address.sun_path))
        return -1;
    strcpy(address.sun_path, control.path);
    control.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(control.listener, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -1;
    return listen(control.listener, CLIENTS_MAX);
}

static void leave_terminal(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(nothing, i);
}

static int run_daemon(bool in_background)
{
    char rest[LINE_LENGTH_MAX];

    for (int i = 0; i < CLIENTS_MAX; i++)
        control.peers[i].socket = -1;
    if (has_fault("fail", rest)) {
        fprintf(stderr, "%s\n", rest);
        return EXIT_FAILURE;
    }
    if (has_fault("hang", rest)) {
        for (;;)
            pause();
    }
    if (listen_there() < 0) {
        printf(errno == EADDRINUSE ? "An instance of this daemon is already running\n"
                                   : "Failed to start the control daemon\n");
        return EXIT_FAILURE;
    }
    if (in_background && fork() != 0)
        return EXIT_SUCCESS;
    if (in_background)
        leave_terminal();
    signal(SIGCHLD, SIG_IGN);
    write_pid();
    say("control.log", "Control", "Starting control daemon using socket %s", control.path);
    say("control.log", "Control",
        "To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY=%s",
        control.pipes);
    serve();
    return EXIT_SUCCESS;
}

/* ---- Clients and commands ---- */

static int dial(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int daemon = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%.107s", control.path);
    if (connect(daemon, (struct sockaddr *)&address, sizeof(address)) == 0)
        return daemon;
    close(daemon);
    return -1;
}

/* Sends one command and prints the answer. */
static int command(const char *line)
{
    int daemon = dial();
    char words[ANSWER_MAX];
    size_t length = 0;
    ssize_t got;
    bool is_done;

    if (daemon < 0) {
        printf("Cannot find MPS control daemon process\n");
        return EXIT_FAILURE;
    }
    if (send(daemon, line, strlen(line), MSG_NOSIGNAL) < 0)
        return EXIT_FAILURE;
    while (length < sizeof(words) &&
           (got = recv(daemon, words + length, sizeof(words) - length, 0)) > 0)
        length += (size_t)got;
    close(daemon);
    is_done =
        length >= strlen(DONE) && memcmp(words + length - strlen(DONE), DONE, strlen(DONE)) == 0;
    fwrite(words, 1, is_done ? length - strlen(DONE) : length, stdout);
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int be_client(void)
{
    int daemon = dial();
    char words[LINE_LENGTH_MAX];
    ssize_t length;

    if (daemon < 0 || send(daemon, "client\n", strlen("client\n"), MSG_NOSIGNAL) < 0 ||
        (length = recv(daemon, words, sizeof(words), 0)) <= 0) {
        printf("refused\n");
        return EXIT_FAILURE;
    }
    fwrite(words, 1, (size_t)length, stdout);
    fflush(stdout);
    while (read(STDIN_FILENO, words, sizeof(words)) > 0) {
    }
    close(daemon);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    static char faults[PATH_LENGTH_MAX];
    char line[LINE_LENGTH_MAX];
    int code = EXIT_SUCCESS;

    snprintf(faults, sizeof(faults), "%s.faults", argv[0]);
    control.faults = faults;
    control.pipes = variable("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps");
    control.logs = variable("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps");
    snprintf(control.path, sizeof(control.path), "%s/control", control.pipes);
    if (argc == 2 && (strcmp(argv[1], "-d") == 0 || strcmp(argv[1], "-f") == 0))
        return run_daemon(argv[1][1] == 'd');
    if (argc == 2 && strcmp(argv[1], "--client") == 0)
        return be_client();
    if (argc != 1) {
        fprintf(stderr, "usage: %s [-d | -f]\n", argv[0]);
        return 2;
    }
    while (fgets(line, sizeof(line), stdin) != NULL && code == EXIT_SUCCESS)
        code = command(line);
    return code;
}
