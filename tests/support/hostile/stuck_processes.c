// SPDX-License-Identifier: Apache-2.0
/* Processes that stay in the kernel as long as a FUSE server of their own user does not answer.
 *
 *     stuck-processes exec|read COUNT SECONDS DEVICE DIRECTORY [NAME=VALUE ...]
 *
 * exec: COUNT children are inside execve. Each has a file open that is closed on exec, and the
 *       server does not answer FLUSH. The kernel keeps exec_update_lock of the child meanwhile.
 * read: COUNT children are inside read. After a signal they are in state D, and SIGKILL does not
 *       end them.
 *
 * An unprivileged user can do all of this. DEVICE is /dev/fuse or a copy of this node; DIRECTORY is
 * the mount point, in a mount namespace of the program's own. The children have the variables in
 * the environment that /proc shows.
 *
 * The program prints "stuck" and the pids of its children when all of them are stuck. It releases
 * and reaps them when its input ends. The kernel releases them when the program is killed, when its
 * parent ends, and after SECONDS. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX 1000
#define REQUEST_MAX  (128 * 1024)

static const char FILE_NAME[] = "file";
static const uint64_t FILE_NODE = 2;

struct server {
    int device;
    bool in_exec;
    int count;
    int stuck;
    char **variables;
    pid_t children[CHILDREN_MAX];
};

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "stuck-processes: cannot %s: %s\n", what, strerror(errno));
    exit(1);
}

static void write_text(const char *path, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void write_text(const char *path, const char *format, ...)
{
    char text[64];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, (size_t)length) != length)
        fail(path);
    close(file);
}

/* Enter a user namespace in which this user keeps its id, and a mount namespace. */
static void enter_namespaces(void)
{
    unsigned uid = getuid();
    unsigned gid = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
        fail("make namespaces");
    write_text("/proc/self/setgroups", "deny");
    write_text("/proc/self/uid_map", "%u %u 1", uid, uid);
    write_text("/proc/self/gid_map", "%u %u 1", gid, gid);
}

static int mount_fuse(const char *device, const char *directory)
{
    int fuse = open(device, O_RDWR | O_CLOEXEC);
    if (fuse < 0)
        fail("open the FUSE device");
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fuse, getuid(),
             getgid());
    if (mount("stuck", directory, "fuse", MS_NOSUID | MS_NODEV, options) != 0)
        fail("mount FUSE");
    return fuse;
}

/* Run in a child that has become this program again. */
static int become_stuck(bool in_exec, const char *path)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    char byte;
    if (file >= 0 && in_exec)
        execl("/bin/true", "true", (char *)NULL);
    return file < 0 || read(file, &byte, 1) < 0;
}

_Noreturn static void become_child(const struct server *server, const char *directory)
{
    close(server->device); // otherwise the kernel would wait for this process, too
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, FILE_NAME);
    for (int i = 0; server->variables[i] != NULL; i++)
        putenv(server->variables[i]);
    execl("/proc/self/exe", "stuck-processes", server->in_exec ? "exec" : "read", path,
          (char *)NULL);
    _exit(1);
}

static void answer(const struct server *server, const struct fuse_in_header *request, int error,
                   const void *data, size_t size)
{
    char buffer[1024];
    struct fuse_out_header header = {
        .len = (uint32_t)(sizeof header + size), .error = -error, .unique = request->unique};
    memcpy(buffer, &header, sizeof header);
    if (size != 0)
        memcpy(buffer + sizeof header, data, size);
    // The kernel says ENOENT when the asking process no longer waits.
    if (write(server->device, buffer, header.len) < 0 && errno != ENOENT)
        fail("answer");
}

static struct fuse_attr attributes_of(uint64_t node)
{
    bool is_file = node == FILE_NODE;
    return (struct fuse_attr){
        .ino = node,
        .size = is_file ? 4096 : 0,
        .mode = is_file ? S_IFREG | 0444 : S_IFDIR | 0555,
        .nlink = 1,
        .uid = getuid(),
        .gid = getgid(),
        .blksize = 4096,
    };
}

static void look_up(const struct server *server, const struct fuse_in_header *request)
{
    if (strcmp((const char *)(request + 1), FILE_NAME) != 0) {
        answer(server, request, ENOENT, NULL, 0);
        return;
    }
    struct fuse_entry_out entry = {
        .nodeid = FILE_NODE, .entry_valid = 60, .attr_valid = 60, .attr = attributes_of(FILE_NODE)};
    answer(server, request, 0, &entry, sizeof entry);
}

static void initialize(const struct server *server, const struct fuse_in_header *request)
{
    struct fuse_init_out values = {.major = FUSE_KERNEL_VERSION,
                                   .minor = FUSE_KERNEL_MINOR_VERSION,
                                   .max_readahead = 4096,
                                   .max_background = 1024,
                                   .congestion_threshold = 1024,
                                   .max_write = 4096,
                                   .time_gran = 1};
    answer(server, request, 0, &values, sizeof values);
}

/* Tell the parent that all children are stuck. */
static void announce(const struct server *server)
{
    printf("stuck");
    for (int i = 0; i < server->count; i++)
        printf(" %d", server->children[i]);
    printf("\n");
    fflush(stdout);
}

/* Answer one request, or leave it without an answer. */
static void serve(struct server *server, const struct fuse_in_header *request)
{
    struct fuse_attr_out attributes = {.attr_valid = 60, .attr = attributes_of(request->nodeid)};
    // FOPEN_DIRECT_IO: each read is a request of its own.
    struct fuse_open_out opened = {.fh = 1, .open_flags = FOPEN_DIRECT_IO};
    bool sticks = request->opcode == (server->in_exec ? FUSE_FLUSH : FUSE_READ);
    switch (request->opcode) {
    case FUSE_INIT:
        initialize(server, request);
        break;
    case FUSE_LOOKUP:
        look_up(server, request);
        break;
    case FUSE_GETATTR:
        answer(server, request, 0, &attributes, sizeof attributes);
        break;
    case FUSE_OPEN:
        answer(server, request, 0, &opened, sizeof opened);
        break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break; // these have no answer
    default:
        if (!sticks)
            answer(server, request, ENOSYS, NULL, 0);
    }
    server->stuck += sticks;
    if (sticks && server->stuck == server->count)
        announce(server);
}

/* Serve until the input ends. */
static void serve_all(struct server *server)
{
    static char buffer[REQUEST_MAX];
    struct pollfd watched[] = {{.fd = server->device, .events = POLLIN},
                               {.fd = STDIN_FILENO, .events = POLLIN}};
    while (poll(watched, 2, -1) >= 0 || errno == EINTR) {
        if (watched[1].revents != 0 && read(STDIN_FILENO, buffer, sizeof buffer) <= 0)
            return;
        if (watched[0].revents == 0)
            continue;
        ssize_t length = read(server->device, buffer, sizeof buffer);
        if (length >= (ssize_t)sizeof(struct fuse_in_header))
            serve(server, (const struct fuse_in_header *)buffer);
        else if (length < 0 && errno != EINTR && errno != EAGAIN && errno != ENOENT)
            fail("read a request");
    }
}

/* End the connection to the kernel, which releases the children, and reap them. */
static void release_children(struct server *server)
{
    for (int i = 0; i < server->count; i++)
        kill(server->children[i], SIGKILL);
    close(server->device);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

int main(int argc, char **argv)
{
    static struct server server;
    server.in_exec = argc > 1 && strcmp(argv[1], "exec") == 0;
    if (argc == 3)
        return become_stuck(server.in_exec, argv[2]);
    if (argc < 6) {
        fprintf(
            stderr,
            "usage: stuck-processes exec|read COUNT SECONDS DEVICE DIRECTORY [NAME=VALUE ...]\n");
        return 2;
    }
    server.variables = argv + 6;
    server.count = (int)strtol(argv[2], NULL, 10);
    if (server.count < 1 || server.count > CHILDREN_MAX)
        return 2;
    alarm((unsigned)strtol(argv[3], NULL, 10));
    pid_t parent = getppid();
    enter_namespaces();
    prctl(PR_SET_PDEATHSIG, SIGKILL); // after the change of credentials, which clears it
    if (getppid() != parent)
        return 1;
    server.device = mount_fuse(argv[4], argv[5]);
    for (int i = 0; i < server.count; i++) {
        pid_t child = fork();
        if (child == 0)
            become_child(&server, argv[5]);
        if (child < 0)
            fail("fork");
        server.children[i] = child;
    }
    serve_all(&server);
    release_children(&server);
    return 0;
}
