/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include "sandbox/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count.h"

static pid_t parent;

/* The kernel ignores the upper half of an argument that is an int. */
#define UPPER_HALF (UINT64_C(1) << 32)

/* Returns the error of a system call's result, 0 for success. */
static int error_of(long result)
{
    return result < 0 ? errno : 0;
}

/* Runs `attempt` in a child with the profile. Returns its result, an errno. */
static int attempt_within(enum sandbox_profile profile, int (*attempt)(void))
{
    int status;
    pid_t child;

    parent = getpid();
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (sandbox_enter(profile, NULL) < 0)
            _exit(255);
        _exit(attempt());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), 255);
    return WEXITSTATUS(status);
}

/* ---- Attempts ---- */

static int trace_parent(void)
{
    return error_of(ptrace(PTRACE_ATTACH, parent, NULL, NULL));
}

static int open_memory_of_parent(void)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/mem", (int)parent);
    return error_of(open(path, O_RDWR | O_CLOEXEC));
}

static int write_memory_of_parent(void)
{
    return error_of(syscall(SYS_process_vm_writev, parent, NULL, 0, NULL, 0, 0));
}

static int signal_parent(void)
{
    return error_of(kill(parent, SIGCONT));
}

static int signal_parent_by_pidfd(void)
{
    return error_of(syscall(SYS_pidfd_send_signal, pidfd_open(parent, 0), SIGCONT, NULL, 0));
}

static int limit_parent(void)
{
    return error_of(syscall(SYS_prlimit64, parent, 0, NULL, NULL));
}

static int take_descriptor_of_parent(void)
{
    return error_of(pidfd_getfd(pidfd_open(parent, 0), 1, 0));
}

static int execute(void)
{
    char *arguments[] = {(char *)"true", NULL};

    return error_of(execv("/bin/true", arguments));
}

static int make_child(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(0);
    return error_of(child);
}

static int become_other(void)
{
    return error_of(syscall(SYS_setresuid, getuid(), getuid(), getuid()));
}

static int mount_something(void)
{
    return error_of(mount("none", "/", "tmpfs", 0, NULL));
}

static int enter_namespace(void)
{
    return error_of(unshare(CLONE_NEWUSER));
}

static int load_program(void)
{
    return error_of(syscall(SYS_bpf, 0, NULL, 0));
}

static int load_module(void)
{
    return error_of(syscall(SYS_finit_module, -1, "", 0));
}

static int load_kernel(void)
{
    return error_of(syscall(SYS_kexec_load, 0, 0, NULL, 0));
}

static int measure(void)
{
    return error_of(syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0));
}

static int call_service(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/nowhere/at/all"};

    return error_of(connect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
                            (struct sockaddr *)&address, sizeof(address)));
}

/* Returns EAFNOSUPPORT if sockets of all families are refused that reach other machines. */
static int make_sockets_of_networks(void)
{
    static const int families[] = {AF_UNSPEC, AF_INET,  AF_INET6, AF_PACKET,
                                   AF_ALG,    AF_VSOCK, AF_XDP,   AF_MAX};

    for (size_t i = 0; i < COUNT(families); i++) {
        if (error_of(socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0)) != EAFNOSUPPORT ||
            error_of(syscall(SYS_socket, UPPER_HALF | (unsigned)families[i], SOCK_DGRAM, 0)) !=
                EAFNOSUPPORT)
            return 100 + families[i];
    }
    return EAFNOSUPPORT;
}

static int make_local_datagram_socket(void)
{
    return error_of(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

static int make_local_datagram_socket_with_upper_half(void)
{
    return error_of(syscall(SYS_socket, AF_UNIX, UPPER_HALF | SOCK_DGRAM, 0));
}

static int make_local_raw_socket(void)
{
    return error_of(socket(AF_UNIX, SOCK_RAW | SOCK_CLOEXEC, 0));
}

static int make_pair_of_datagram_sockets(void)
{
    int ends[2];

    return error_of(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends));
}

static int send_to_service(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/nowhere/at/all"};
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return 100;
    if (send(ends[0], "x", 1, MSG_NOSIGNAL) != 1)
        return 101;
    return error_of(
        sendto(ends[0], "x", 1, MSG_NOSIGNAL, (struct sockaddr *)&address, sizeof(address)));
}

static int open_to_write(void)
{
    return error_of(open("/dev/null", O_WRONLY | O_CLOEXEC));
}

static int open_to_read_and_write(void)
{
    return error_of(open("/dev/null", O_RDWR | O_CLOEXEC));
}

static int open_to_create(void)
{
    return error_of(open("/tmp", O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int open_to_truncate(void)
{
    return error_of(open("/dev/null", O_RDONLY | O_TRUNC | O_CLOEXEC));
}

static int open_unnamed(void)
{
    return error_of(open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600));
}

static int open_by_struct(void)
{
    return error_of(syscall(SYS_openat2, AT_FDCWD, "/dev/null", NULL, 0));
}

static int make_socket(void)
{
    return error_of(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

static int make_memory_executable(void)
{
    void *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return place == MAP_FAILED ? 0 : error_of(mprotect(place, 4096, PROT_READ | PROT_EXEC));
}

static int remove_file(void)
{
    return error_of(unlink("/nowhere/at/all"));
}

static int own_files(void)
{
    return error_of(fcntl(0, F_SETOWN, parent));
}

static int own_files_with_upper_half(void)
{
    return error_of(syscall(SYS_fcntl, 0, UPPER_HALF | F_SETOWN, (long)parent));
}

static int own_files_by_struct(void)
{
    struct f_owner_ex owner = {F_OWNER_PID, parent};

    return error_of(fcntl(0, F_SETOWN_EX, &owner));
}

static int own_files_by_struct_with_upper_half(void)
{
    struct f_owner_ex owner = {F_OWNER_PID, parent};

    return error_of(syscall(SYS_fcntl, 0, UPPER_HALF | F_SETOWN_EX, &owner));
}

static int own_files_by_ioctl(void)
{
    return error_of(ioctl(0, FIOSETOWN, &parent));
}

static int own_files_by_ioctl_with_upper_half(void)
{
    return error_of(syscall(SYS_ioctl, 0, UPPER_HALF | FIOSETOWN, &parent));
}

static int own_sockets(void)
{
    return error_of(ioctl(0, SIOCSPGRP, &parent));
}

static int own_sockets_with_upper_half(void)
{
    return error_of(syscall(SYS_ioctl, 0, UPPER_HALF | SIOCSPGRP, &parent));
}

static int choose_signal_of_files(void)
{
    return error_of(fcntl(0, F_SETSIG, SIGKILL));
}

static int choose_signal_of_files_with_upper_half(void)
{
    return error_of(syscall(SYS_fcntl, 0, UPPER_HALF | F_SETSIG, (long)SIGKILL));
}

static int type_into_terminal(void)
{
    return error_of(ioctl(0, TIOCSTI, "x"));
}

static int type_into_terminal_with_upper_half(void)
{
    return error_of(syscall(SYS_ioctl, 0, UPPER_HALF | TIOCSTI, "x"));
}

static int paste_into_terminal(void)
{
    return error_of(ioctl(0, TIOCLINUX, "\3"));
}

static int signal_parent_with_upper_half(void)
{
    return error_of(syscall(SYS_kill, UPPER_HALF | (unsigned long)parent, (long)SIGCONT));
}

static int signal_thread_of_parent(void)
{
    return error_of(syscall(SYS_tgkill, parent, parent, SIGCONT));
}

static int queue_signal_to_parent(void)
{
    siginfo_t info = {.si_code = SI_QUEUE};

    return error_of(syscall(SYS_rt_sigqueueinfo, parent, SIGCONT, &info));
}

static int limit_parent_with_upper_half(void)
{
    return error_of(syscall(SYS_prlimit64, UPPER_HALF | (unsigned long)parent, 0, NULL, NULL));
}

static int move_parent_to_a_cpu(void)
{
    cpu_set_t all;

    sched_getaffinity(0, sizeof(all), &all);
    return error_of(sched_setaffinity(parent, sizeof(all), &all));
}

static int make_child_with_upper_half(void)
{
    long child = syscall(SYS_clone, UPPER_HALF | SIGCHLD, NULL, NULL, NULL, NULL);

    if (child == 0)
        _exit(0);
    return error_of(child);
}

static int become_traceable(void)
{
    return error_of(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

/* ---- What remains ---- */

static void *do_nothing(void *context)
{
    return context;
}

/* Does everything that a library of a driver is known to do: opens a device for writing, queries
 * it, maps memory for programs and starts threads. */
static int use_driver(void)
{
    int device = open("/dev/null", O_RDWR | O_CLOEXEC);
    int unknown = 0;
    cpu_set_t all;
    pthread_t thread;
    void *place =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (device < 0 || place == MAP_FAILED)
        return errno;
    if (ioctl(device, 0x4601, &unknown) != -1 || errno != ENOTTY)
        return 1;
    /* A process exists if it must not be signalled. */
    if ((kill(parent, 0) < 0 && errno != EPERM) || raise(SIGCONT) != 0)
        return 2;
    if (socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ||
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0) < 0)
        return 3;
    if (sched_getaffinity(0, sizeof(all), &all) < 0 || sched_setaffinity(0, sizeof(all), &all) < 0)
        return 4;
    return pthread_create(&thread, NULL, do_nothing, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

/* Does everything that a reader of /proc needs. */
static int use_proc(void)
{
    char bytes[64];
    struct stat status;
    struct pollfd ending = {.fd = pidfd_open(parent, 0), .events = POLLIN};
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    int namespace = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    DIR *directory = opendir("/proc/self/fd");
    uid_t owner;

    if (file < 0 || namespace < 0 || directory == NULL || ending.fd < 0)
        return 1;
    if (read(file, bytes, sizeof(bytes)) <= 0 || readdir(directory) == NULL)
        return 2;
    if (poll(&ending, 1, 0) != 0)
        return 3;
    if (readlink("/proc/self/exe", bytes, sizeof(bytes)) <= 0 || stat("/proc/1", &status) < 0)
        return 4;
    if (ioctl(namespace, NS_GET_OWNER_UID, &owner) < 0 && errno == EPERM)
        return 5;
    free(malloc(1 << 20));
    return 0;
}

/* Returns 0 if the process has these capabilities and no others. */
static int compare_capabilities(uint64_t wanted)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data) < 0)
        return 1;
    if ((data[0].effective | (uint64_t)data[1].effective << 32) != wanted)
        return 2;
    if ((data[0].permitted | (uint64_t)data[1].permitted << 32) != wanted)
        return 3;
    return data[0].inheritable != 0 || data[1].inheritable != 0 ? 4 : 0;
}

static int has_no_capabilities(void)
{
    for (int i = 0; i < 64; i++) {
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) == 1)
            return 5;
        if (geteuid() == 0 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
            return 6;
    }
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 7;
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0 ? 8 : compare_capabilities(0);
}

static int has_capabilities_of_readers(void)
{
    uint64_t both = UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH;

    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return 7;
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 0
               ? 8
               : compare_capabilities(geteuid() == 0 ? both : 0);
}

/* ---- Tests ---- */

struct attempt {
    const char *name;
    int (*run)(void);
    int wanted;
};

static void assert_refused(enum sandbox_profile profile, const struct attempt *attempts,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int got = attempt_within(profile, attempts[i].run);

        if (got != attempts[i].wanted)
            fail_msg("%s: expected %s, got %s", attempts[i].name, strerror(attempts[i].wanted),
                     strerror(got));
    }
}

static void a_driver_controls_nothing_else(void **state)
{
    static const struct attempt attempts[] = {
        {"trace", trace_parent, EPERM},
        {"memory", write_memory_of_parent, EPERM},
        {"signal", signal_parent, EPERM},
        {"signal by pidfd", signal_parent_by_pidfd, EPERM},
        {"limits", limit_parent, EPERM},
        {"descriptor", take_descriptor_of_parent, EPERM},
        {"owner of a file", own_files, EPERM},
        {"owner of a file, upper half", own_files_with_upper_half, EPERM},
        {"owner of a file by struct", own_files_by_struct, EPERM},
        {"owner of a file by struct, upper half", own_files_by_struct_with_upper_half, EPERM},
        {"owner of a file by ioctl", own_files_by_ioctl, EPERM},
        {"owner of a file by ioctl, upper half", own_files_by_ioctl_with_upper_half, EPERM},
        {"owner of a socket", own_sockets, EPERM},
        {"owner of a socket, upper half", own_sockets_with_upper_half, EPERM},
        {"signal of a file", choose_signal_of_files, EPERM},
        {"signal of a file, upper half", choose_signal_of_files_with_upper_half, EPERM},
        {"typing", type_into_terminal, EPERM},
        {"typing, upper half", type_into_terminal_with_upper_half, EPERM},
        {"pasting", paste_into_terminal, EPERM},
        {"signal, upper half", signal_parent_with_upper_half, EPERM},
        {"signal to a thread", signal_thread_of_parent, EPERM},
        {"signal by a queue", queue_signal_to_parent, EPERM},
        {"limits, upper half", limit_parent_with_upper_half, EPERM},
        {"CPUs", move_parent_to_a_cpu, EPERM},
        {"child, upper half", make_child_with_upper_half, EPERM},
        {"program", execute, EPERM},
        {"child", make_child, EPERM},
        {"user", become_other, EPERM},
        {"mount", mount_something, EPERM},
        {"namespace", enter_namespace, EPERM},
        {"bpf", load_program, EPERM},
        {"module", load_module, EPERM},
        {"kexec", load_kernel, EPERM},
        {"perf", measure, EPERM},
        {"service", call_service, ECONNREFUSED},
        {"networks", make_sockets_of_networks, EAFNOSUPPORT},
        {"datagrams", make_local_datagram_socket, EAFNOSUPPORT},
        {"datagrams, upper half", make_local_datagram_socket_with_upper_half, EAFNOSUPPORT},
        {"raw socket", make_local_raw_socket, EAFNOSUPPORT},
        {"pair for datagrams", make_pair_of_datagram_sockets, EAFNOSUPPORT},
        {"address", send_to_service, ECONNREFUSED},
    };

    (void)state;
    assert_refused(SANDBOX_DRIVER, attempts, COUNT(attempts));
}

/* The system call filter of a service manager may forbid seccomp(), but not prctl(). */
static int filter_without_seccomp(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = COUNT(steps), .filter = steps};

    /* Without libseccomp, which would remember that the call works. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return 1;
    if (sandbox_enter(SANDBOX_PROC, NULL) < 0)
        return 2;
    return open_to_write() == EPERM ? 0 : 3;
}

static void a_filter_works_below_that_of_a_unit(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(filter_without_seccomp());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_driver_has_no_capabilities(void **state)
{
    (void)state;
    assert_int_equal(attempt_within(SANDBOX_DRIVER, has_no_capabilities), 0);
}

/* The parent is of the same user. It hides its memory, and a child without capabilities cannot see
 * through that. */
static void a_driver_cannot_open_a_hidden_process(void **state)
{
    (void)state;
    sandbox_hide();
    assert_int_equal(attempt_within(SANDBOX_DRIVER, open_memory_of_parent), EACCES);
    assert_int_equal(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
}

/* ---- Processes of the same user that do not hide ---- */

/* Returns the version of the kernel's Landlock; -1: it has none, or may not be used here. */
static long landlock_version(void)
{
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1U << 0);
}

static void skip_without_landlock(long version)
{
    if (landlock_version() < version) {
        print_message("skip: needs version %ld of the kernel's Landlock\n", version);
        skip();
    }
}

static pid_t victim;

static int open_file_of_victim(const char *name, int flags)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/%s", (int)victim, name);
    return error_of(open(path, flags | O_CLOEXEC));
}

static int open_memory_of_victim(void)
{
    return open_file_of_victim("mem", O_RDWR);
}

static int open_environment_of_victim(void)
{
    return open_file_of_victim("environ", O_RDONLY);
}

static int open_descriptor_of_victim(void)
{
    return open_file_of_victim("fd/0", O_RDONLY);
}

static void become_site_program(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capset, &header, data) < 0)
        _exit(1);
}

/* Makes itself traceable, as a library can. */
static void become_traceable_driver(void)
{
    if (sandbox_enter(SANDBOX_DRIVER, NULL) < 0 || become_traceable() != 0)
        _exit(1);
}

/* Starts a process that calls `become` and waits. */
static pid_t start_victim(void (*become)(void))
{
    int ends[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        become();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(ends[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

/* Programs of the site run as the daemon's user without capabilities and do not hide, nor does
 * another worker after its library has undone that. */
static void a_driver_cannot_open_processes_that_do_not_hide(void **state)
{
    static void (*const victims[])(void) = {become_site_program, become_traceable_driver};
    static const struct attempt attempts[] = {
        {"memory", open_memory_of_victim, EACCES},
        {"environment", open_environment_of_victim, EACCES},
        {"descriptor", open_descriptor_of_victim, EACCES},
    };

    (void)state;
    skip_without_landlock(1);
    for (size_t i = 0; i < COUNT(victims); i++) {
        victim = start_victim(victims[i]);
        assert_refused(SANDBOX_DRIVER, attempts, COUNT(attempts));
        kill(victim, SIGKILL);
        assert_int_equal(waitpid(victim, NULL, 0), victim);
    }
}

static int ask_for_parent(void)
{
    return error_of(kill(parent, 0));
}

/* The kernel refuses signals too, whatever the filter overlooks. */
static void a_driver_cannot_signal_beyond_its_domain(void **state)
{
    (void)state;
    skip_without_landlock(6);
    assert_int_equal(attempt_within(SANDBOX_DRIVER, ask_for_parent), EPERM);
}

static void a_driver_does_what_libraries_do(void **state)
{
    (void)state;
    assert_int_equal(attempt_within(SANDBOX_DRIVER, use_driver), 0);
}

static void a_reader_only_reads(void **state)
{
    static const struct attempt attempts[] = {
        {"write", open_to_write, EPERM},
        {"read and write", open_to_read_and_write, EPERM},
        {"create", open_to_create, EPERM},
        {"truncate", open_to_truncate, EPERM},
        {"unnamed file", open_unnamed, EPERM},
        {"openat2", open_by_struct, EPERM},
        {"remove", remove_file, EPERM},
        {"memory of the parent", open_memory_of_parent, EPERM},
        {"memory by a call", write_memory_of_parent, EPERM},
        {"trace", trace_parent, EPERM},
        {"signal", signal_parent, EPERM},
        {"signal by pidfd", signal_parent_by_pidfd, EPERM},
        {"limits", limit_parent, EPERM},
        {"descriptor", take_descriptor_of_parent, EPERM},
        {"owner of a file", own_files, EPERM},
        {"owner of a file, upper half", own_files_with_upper_half, EPERM},
        {"owner of a file by struct", own_files_by_struct, EPERM},
        {"owner of a file by struct, upper half", own_files_by_struct_with_upper_half, EPERM},
        {"owner of a file by ioctl", own_files_by_ioctl, EPERM},
        {"owner of a file by ioctl, upper half", own_files_by_ioctl_with_upper_half, EPERM},
        {"owner of a socket", own_sockets, EPERM},
        {"owner of a socket, upper half", own_sockets_with_upper_half, EPERM},
        {"signal of a file", choose_signal_of_files, EPERM},
        {"signal of a file, upper half", choose_signal_of_files_with_upper_half, EPERM},
        {"typing", type_into_terminal, EPERM},
        {"typing, upper half", type_into_terminal_with_upper_half, EPERM},
        {"pasting", paste_into_terminal, EPERM},
        {"signal, upper half", signal_parent_with_upper_half, EPERM},
        {"signal to a thread", signal_thread_of_parent, EPERM},
        {"signal by a queue", queue_signal_to_parent, EPERM},
        {"limits, upper half", limit_parent_with_upper_half, EPERM},
        {"CPUs", move_parent_to_a_cpu, EPERM},
        {"child, upper half", make_child_with_upper_half, EPERM},
        {"program", execute, EPERM},
        {"child", make_child, EPERM},
        {"user", become_other, EPERM},
        {"mount", mount_something, EPERM},
        {"namespace", enter_namespace, EPERM},
        {"bpf", load_program, EPERM},
        {"module", load_module, EPERM},
        {"kexec", load_kernel, EPERM},
        {"perf", measure, EPERM},
        {"socket", make_socket, EPERM},
        {"executable memory", make_memory_executable, EPERM},
        {"core dumps", become_traceable, EPERM},
    };

    (void)state;
    assert_refused(SANDBOX_PROC, attempts, COUNT(attempts));
}

/* ---- Calls of other architectures ---- */

/* Returns the wait status of a child with the profile that does `attempt`. */
static int status_within(enum sandbox_profile profile, void (*attempt)(void))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* cmocka has installed a handler */
        if (sandbox_enter(profile, NULL) < 0)
            _exit(255);
        attempt();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

#ifdef __x86_64__

/* Ends the process with 0 if the call of the other architecture has worked. */
static _Noreturn void exit_after(long result)
{
    _exit(result == getpid() ? 0 : 1);
}

static void call_as_x32(void)
{
    const long x32_bit = 0x40000000;

    exit_after(syscall(x32_bit | SYS_getpid));
}

static void call_as_i386(void)
{
    long result = 20; /* getpid() */

    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    exit_after(result);
}

/* Their numbers have other meanings, so a filter of this architecture's calls says nothing. */
static void other_architectures_have_no_calls(void **state)
{
    static void (*const attempts[])(void) = {call_as_x32, call_as_i386};
    static const enum sandbox_profile profiles[] = {SANDBOX_DRIVER, SANDBOX_PROC};

    (void)state;
    for (size_t i = 0; i < COUNT(attempts) * COUNT(profiles); i++) {
        int status = status_within(profiles[i % 2], attempts[i / 2]);

        if (WIFEXITED(status))
            assert_int_equal(WEXITSTATUS(status), 1);
    }
}

#else

static void other_architectures_have_no_calls(void **state)
{
    (void)state;
    (void)status_within;
    print_message("skip: needs x86_64\n");
    skip();
}

#endif

static void a_reader_keeps_two_capabilities(void **state)
{
    (void)state;
    assert_int_equal(attempt_within(SANDBOX_PROC, has_capabilities_of_readers), 0);
}

static void a_reader_reads(void **state)
{
    (void)state;
    assert_int_equal(attempt_within(SANDBOX_PROC, use_proc), 0);
}

/* Returns 0 if the supervisor's capabilities are not in effect, and its child has those that it
 * needs. */
static int supervise(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    int status;
    pid_t child;

    if (sandbox_enter_supervisor(NULL) < 0 || syscall(SYS_capget, &header, data) < 0)
        return 20;
    if (data[0].effective != 0 || data[1].effective != 0 || data[1].permitted != 0)
        return 21;
    child = fork();
    if (child == 0)
        _exit(sandbox_enter(SANDBOX_PROC, NULL) < 0 ? 22 : has_capabilities_of_readers());
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 23;
}

static void a_supervisor_only_passes_capabilities_on(void **state)
{
    int status;
    pid_t child = fork();

    (void)state;
    assert_true(child >= 0);
    if (child == 0)
        _exit(supervise());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_controls_nothing_else),
        cmocka_unit_test(a_filter_works_below_that_of_a_unit),
        cmocka_unit_test(a_driver_has_no_capabilities),
        cmocka_unit_test(a_driver_cannot_open_a_hidden_process),
        cmocka_unit_test(a_driver_cannot_open_processes_that_do_not_hide),
        cmocka_unit_test(a_driver_cannot_signal_beyond_its_domain),
        cmocka_unit_test(a_driver_does_what_libraries_do),
        cmocka_unit_test(other_architectures_have_no_calls),
        cmocka_unit_test(a_reader_only_reads),
        cmocka_unit_test(a_reader_keeps_two_capabilities),
        cmocka_unit_test(a_reader_reads),
        cmocka_unit_test(a_supervisor_only_passes_capabilities_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
