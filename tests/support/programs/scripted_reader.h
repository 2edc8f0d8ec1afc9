/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader's side of berth-reader's messages, for a test program that plays the reader: it is
 * BERTH_READER itself, and its argv[0] is "berth-reader" then.
 */
#ifndef SUPPORT_PROGRAMS_SCRIPTED_READER_H
#define SUPPORT_PROGRAMS_SCRIPTED_READER_H

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count.h"
#include "base/text/text.h"
#include "reader/reader_messages.h"

/* Sends a packet with descriptors. Ends the program if the other end is closed. */
static inline void scripted_reader_send(const struct text *packet, const int *descriptors,
                                        size_t count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))]; /* so many at most */
    } control = {0};
    struct iovec part = {.iov_base = packet->bytes, .iov_len = packet->length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
    }
    if (sendmsg(STDIN_FILENO, &message, MSG_NOSIGNAL) < 0)
        _exit(0);
}

/* Sends an answer with the descriptors of its processes. */
static inline void scripted_reader_answer(struct reader_answer *answer, const int *descriptors,
                                          size_t count)
{
    struct text packet = {0};

    if (reader_answer_encode(answer, &packet) < 0)
        _exit(1);
    scripted_reader_send(&packet, descriptors, count);
    text_finish(&packet);
}

/* Must be the first message. */
static inline void scripted_reader_say_hello(void)
{
    const struct reader_process one = {
        .pid = (uint32_t)getpid(), .state = READER_FOUND, .has_descriptor = true};
    struct reader_process self[2] = {one, one};
    struct reader_answer hello = {.processes = {.items = self, .count = 2, .capacity = 2}};
    const int descriptors[] = {(int)syscall(SYS_pidfd_open, getpid(), 0),
                               open("/proc/self/stat", O_RDONLY | O_CLOEXEC)};

    scripted_reader_answer(&hello, descriptors, COUNT(descriptors));
}

#endif
