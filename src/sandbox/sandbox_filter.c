/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/sandbox_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/count.h"

/* A filter while it is built. A failure is kept, and the following rules are not added. */
struct filter {
    scmp_filter_ctx rules;
    int failure; /* a negative errno, or 0 */
};

/* The names of system calls. Architectures and versions of the kernel have different ones, so a
 * name that libseccomp does not know here is skipped. */
struct call_list {
    const char *const *names;
    size_t count;
};

#define CALLS(array) ((struct call_list){array, COUNT(array)})

static void add_rule(struct filter *filter, uint32_t action, const char *name,
                     const struct scmp_arg_cmp *conditions, unsigned count)
{
    int call = seccomp_syscall_resolve_name(name);

    if (filter->failure < 0 || call == __NR_SCMP_ERROR)
        return;
    filter->failure = seccomp_rule_add_array(filter->rules, action, call, count, conditions);
    /* The call does not exist on this architecture. */
    if (filter->failure == -EDOM)
        filter->failure = 0;
}

static void add_rules(struct filter *filter, uint32_t action, struct call_list calls)
{
    for (size_t i = 0; i < calls.count; i++)
        add_rule(filter, action, calls.names[i], NULL, 0);
}

/* Return conditions on an argument of a call, which is counted from 0. They compare 64 bits, but
 * the kernel ignores the upper half of an int. So a rule that refuses an int must use
 * argument_equals_int(), unless other values are refused as well. */
static struct scmp_arg_cmp argument_equals(unsigned argument, scmp_datum_t value)
{
    return (struct scmp_arg_cmp){.arg = argument, .op = SCMP_CMP_EQ, .datum_a = value};
}

static struct scmp_arg_cmp argument_differs(unsigned argument, scmp_datum_t value)
{
    return (struct scmp_arg_cmp){.arg = argument, .op = SCMP_CMP_NE, .datum_a = value};
}

static struct scmp_arg_cmp argument_has_bits(unsigned argument, scmp_datum_t mask,
                                             scmp_datum_t value)
{
    return (struct scmp_arg_cmp){
        .arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = mask, .datum_b = value};
}

static struct scmp_arg_cmp argument_equals_int(unsigned argument, unsigned value)
{
    return argument_has_bits(argument, UINT32_MAX, value);
}

static struct scmp_arg_cmp argument_is_above(unsigned argument, scmp_datum_t value)
{
    return (struct scmp_arg_cmp){.arg = argument, .op = SCMP_CMP_GT, .datum_a = value};
}

#define ADD_RULE_IF(filter, action, name, ...)                         \
    do {                                                               \
        const struct scmp_arg_cmp conditions[] = {__VA_ARGS__};        \
                                                                       \
        add_rule(filter, action, name, conditions, COUNT(conditions)); \
    } while (0)

/* ---- Drivers ---- */

/* The bits of the type of a socket; the others are flags. */
enum { SOCKET_TYPE = 0xF };

/* A driver's library may use all other calls, because the calls that closed libraries need are
 * unknown. */
static const char *const forbidden_to_drivers[] = {
    /* Other processes. */
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "process_mrelease",
    "pidfd_getfd",
    "pidfd_send_signal",
    "kcmp",
    "tkill",
    "move_pages",
    "migrate_pages",
    "setpriority",
    "ioprio_set",
    "sched_setparam",
    "sched_setscheduler",
    "sched_setattr",
    /* Programs and children. */
    "execve",
    "execveat",
    "fork",
    "vfork",
    /* Mounts and namespaces. */
    "mount",
    "umount",
    "umount2",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "open_tree_attr",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "pivot_root",
    "chroot",
    "setns",
    "unshare",
    "name_to_handle_at",
    "open_by_handle_at",
    /* The kernel and the machine. */
    "bpf",
    "perf_event_open",
    "init_module",
    "finit_module",
    "delete_module",
    "create_module",
    "kexec_load",
    "kexec_file_load",
    "reboot",
    "swapon",
    "swapoff",
    "iopl",
    "ioperm",
    "syslog",
    "acct",
    "quotactl",
    "quotactl_fd",
    "sethostname",
    "setdomainname",
    "settimeofday",
    "clock_settime",
    "clock_settime64",
    "clock_adjtime",
    "clock_adjtime64",
    "adjtimex",
    "stime",
    "vhangup",
    "fanotify_init",
    "fanotify_mark",
    "lookup_dcookie",
    "nfsservctl",
    "uselib",
    "userfaultfd",
    "modify_ldt",
    "vm86",
    "vm86old",
    "personality",
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "add_key",
    "keyctl",
    "request_key",
    /* Users and their files. */
    "setuid",
    "setuid32",
    "setgid",
    "setgid32",
    "setreuid",
    "setreuid32",
    "setregid",
    "setregid32",
    "setresuid",
    "setresuid32",
    "setresgid",
    "setresgid32",
    "setfsuid",
    "setfsuid32",
    "setfsgid",
    "setfsgid32",
    "setgroups",
    "setgroups32",
    "capset",
    "chown",
    "chown32",
    "fchown",
    "fchown32",
    "lchown",
    "lchown32",
    "fchownat",
    "mknod",
    "mknodat",
    /* Other programs' sockets. */
    "bind",
    "listen",
    "accept",
    "accept4",
};

/* A file may send signals to its owner. */
static void forbid_signals_of_files(struct filter *filter, uint32_t refuse)
{
    static const char *const calls[] = {"fcntl", "fcntl64"};
    static const unsigned commands[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};

    for (size_t i = 0; i < COUNT(calls); i++) {
        for (size_t j = 0; j < COUNT(commands); j++)
            ADD_RULE_IF(filter, refuse, calls[i], argument_equals_int(1, commands[j]));
    }
    ADD_RULE_IF(filter, refuse, "ioctl", argument_equals_int(1, FIOSETOWN));
    ADD_RULE_IF(filter, refuse, "ioctl", argument_equals_int(1, SIOCSPGRP));
}

static void forbid_signals(struct filter *filter, uint32_t refuse)
{
    static const char *const calls[] = {"tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"};
    pid_t own = getpid();

    /* Signal 0 only shows whether the process exists. */
    ADD_RULE_IF(filter, refuse, "kill", argument_differs(0, (scmp_datum_t)own),
                argument_differs(1, 0));
    for (size_t i = 0; i < COUNT(calls); i++)
        ADD_RULE_IF(filter, refuse, calls[i], argument_differs(0, (scmp_datum_t)own));
    forbid_signals_of_files(filter, refuse);
}

/* A library needs local streams, and netlink to watch devices. A datagram socket, also one of a
 * pair, can send to any address without connect(). A socket of any other family reaches other
 * machines. */
static void forbid_sockets(struct filter *filter)
{
    static const char *const calls[] = {"socket", "socketpair"};
    const uint32_t refuse = SCMP_ACT_ERRNO(EAFNOSUPPORT);

    for (size_t i = 0; i < COUNT(calls); i++) {
        for (unsigned family = 0; family < AF_NETLINK; family++) {
            if (family != AF_UNIX)
                ADD_RULE_IF(filter, refuse, calls[i], argument_equals(0, family));
        }
        ADD_RULE_IF(filter, refuse, calls[i], argument_is_above(0, AF_NETLINK));
        ADD_RULE_IF(filter, refuse, calls[i], argument_equals(0, AF_UNIX),
                    argument_has_bits(1, SOCKET_TYPE, SOCK_DGRAM));
        ADD_RULE_IF(filter, refuse, calls[i], argument_equals(0, AF_UNIX),
                    argument_has_bits(1, SOCKET_TYPE, SOCK_RAW));
    }
}

static void add_driver_rules(struct filter *filter)
{
    const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);

    add_rules(filter, refuse, CALLS(forbidden_to_drivers));
    forbid_signals(filter, refuse);
    /* The limits of others. */
    ADD_RULE_IF(filter, refuse, "prlimit64", argument_differs(0, 0));
    /* Threads, but no children. The C library uses clone() if there is no clone3(). */
    ADD_RULE_IF(filter, refuse, "clone", argument_has_bits(0, CLONE_THREAD, 0));
    add_rule(filter, SCMP_ACT_ERRNO(ENOSYS), "clone3", NULL, 0);
    /* The CPUs of others. A thread may choose its own. */
    ADD_RULE_IF(filter, refuse, "sched_setaffinity", argument_is_above(0, 0));
    /* Characters that are put into a terminal count as typed input. */
    ADD_RULE_IF(filter, refuse, "ioctl", argument_equals_int(1, TIOCSTI));
    ADD_RULE_IF(filter, refuse, "ioctl", argument_equals_int(1, TIOCLINUX));
    forbid_sockets(filter);
    /* Libraries treat this error as a service that does not run. The call is refused because berthd
     * gives a process of its own user an administrator's rights. */
    add_rule(filter, SCMP_ACT_ERRNO(ECONNREFUSED), "connect", NULL, 0);
    ADD_RULE_IF(filter, SCMP_ACT_ERRNO(ECONNREFUSED), "sendto", argument_differs(4, 0));
}

/* ---- Readers of /proc ---- */

static const char *const allowed_to_readers[] = {
    /* Files. */
    "read",
    "readv",
    "pread64",
    "preadv",
    "preadv2",
    "close",
    "close_range",
    "lseek",
    "_llseek",
    "stat",
    "stat64",
    "lstat",
    "lstat64",
    "fstat",
    "fstat64",
    "newfstatat",
    "fstatat64",
    "statx",
    "statfs",
    "statfs64",
    "fstatfs",
    "fstatfs64",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents",
    "getdents64",
    "getcwd",
    "dup",
    "dup2",
    "dup3",
    /* Descriptors that the process has. */
    "write",
    "writev",
    "send",
    "sendto",
    "sendmsg",
    "recv",
    "recvfrom",
    "recvmsg",
    "shutdown",
    "getsockopt",
    "poll",
    "ppoll",
    "ppoll_time64",
    "select",
    "_newselect",
    "pselect6",
    "pselect6_time64",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_ctl_old",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "timerfd_create",
    "timerfd_settime",
    "timerfd_settime64",
    "pidfd_open",
    /* Memory. */
    "brk",
    "munmap",
    "mremap",
    "madvise",
    /* Time and threads. */
    "futex",
    "futex_time64",
    "set_robust_list",
    "rseq",
    "sched_yield",
    "sched_getaffinity",
    "clock_gettime",
    "clock_gettime64",
    "clock_getres",
    "clock_getres_time64",
    "clock_nanosleep",
    "clock_nanosleep_time64",
    "nanosleep",
    "gettimeofday",
    "setitimer",
    "time",
    "times",
    "getrusage",
    /* Itself. */
    "exit",
    "exit_group",
    "getpid",
    "gettid",
    "getppid",
    "getpgrp",
    "getpgid",
    "getsid",
    "getuid",
    "getuid32",
    "geteuid",
    "geteuid32",
    "getgid",
    "getgid32",
    "getegid",
    "getegid32",
    "getgroups",
    "getgroups32",
    "getresuid",
    "getresuid32",
    "getresgid",
    "getresgid32",
    "capget",
    "getrlimit",
    "ugetrlimit",
    "uname",
    "sysinfo",
    "getrandom",
    "restart_syscall",
    /* Signals. */
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigreturn",
    "rt_sigpending",
    "rt_sigtimedwait",
    "rt_sigtimedwait_time64",
    "rt_sigsuspend",
    "sigaltstack",
    "pause",
};

/* The flags of open() that write or create. O_TMPFILE includes O_DIRECTORY. */
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

static void allow_commands(struct filter *filter)
{
    static const int commands[] = {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD, F_DUPFD_CLOEXEC};
    static const char *const calls[] = {"fcntl", "fcntl64"};

    for (size_t i = 0; i < COUNT(calls); i++) {
        for (size_t j = 0; j < COUNT(commands); j++)
            ADD_RULE_IF(filter, SCMP_ACT_ALLOW, calls[i],
                        argument_equals(1, (scmp_datum_t)commands[j]));
    }
    /* All ioctls of this type are queries of namespaces and pidfds (linux/nsfs.h, linux/pidfd.h),
     * which change nothing. */
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "ioctl", argument_has_bits(1, 0xFFF0, 0xB700));
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "ioctl", argument_has_bits(1, 0xFFF0, 0xFF00));
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "prctl", argument_equals(0, PR_SET_NAME));
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "prctl", argument_equals(0, PR_GET_DUMPABLE));
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "prctl", argument_equals(0, PR_GET_NO_NEW_PRIVS));
    /* Only its own limits, and only to read them. */
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "prlimit64", argument_equals(0, 0), argument_equals(2, 0));
}

static void add_proc_rules(struct filter *filter)
{
    static const char *const mapping[] = {"mmap", "mmap2", "mprotect"};
    scmp_datum_t own = (scmp_datum_t)getpid();

    add_rules(filter, SCMP_ACT_ALLOW, CALLS(allowed_to_readers));
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "open", argument_has_bits(1, WRITING, 0));
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "openat", argument_has_bits(2, WRITING, 0));
    for (size_t i = 0; i < COUNT(mapping); i++)
        ADD_RULE_IF(filter, SCMP_ACT_ALLOW, mapping[i], argument_has_bits(2, PROT_EXEC, 0));
    allow_commands(filter);
    /* For abort(). */
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "kill", argument_equals(0, own));
    ADD_RULE_IF(filter, SCMP_ACT_ALLOW, "tgkill", argument_equals(0, own));
}

int sandbox_filter_load(enum sandbox_profile profile)
{
    /* A library treats a refusal as a missing right and continues. If a forbidden call killed the
     * process, the machine would seem to have no devices. */
    struct filter filter = {
        .rules = seccomp_init(profile == SANDBOX_DRIVER ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM)),
    };

    if (filter.rules == NULL)
        return -ENOMEM;
    if (profile == SANDBOX_DRIVER)
        add_driver_rules(&filter);
    else
        add_proc_rules(&filter);
    if (filter.failure == 0)
        filter.failure = seccomp_load(filter.rules);
    seccomp_release(filter.rules);
    return filter.failure;
}
