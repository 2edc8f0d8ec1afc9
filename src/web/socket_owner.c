/* SPDX-License-Identifier: Apache-2.0 */
#include "web/socket_owner.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* Unread answers to earlier questions; more are never queued. */
enum { STALE_MAX = 8 };

struct question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
};

int socket_owner_open(void)
{
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    int questions = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);

    /* A connected socket gets messages only from the kernel. */
    if (questions >= 0 &&
        connect(questions, (struct sockaddr *)&kernel, (socklen_t)sizeof(kernel)) != 0) {
        close(questions);
        return -1;
    }
    return questions;
}

/* Copies an address and its port, which the kernel's structures have in separate members. */
static void split_address(const struct sockaddr *address, __be32 *words, __be16 *port)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;

        memcpy(words, &four->sin_addr, sizeof(four->sin_addr));
        *port = four->sin_port;
    } else {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;

        memcpy(words, &six->sin6_addr, sizeof(six->sin6_addr));
        *port = six->sin6_port;
    }
}

static bool same_ends(const struct inet_diag_sockid *one, const struct inet_diag_sockid *other)
{
    return one->idiag_sport == other->idiag_sport && one->idiag_dport == other->idiag_dport &&
           memcmp(one->idiag_src, other->idiag_src, sizeof(one->idiag_src)) == 0 &&
           memcmp(one->idiag_dst, other->idiag_dst, sizeof(one->idiag_dst)) == 0;
}

/* Reads the answer to the question. Returns false if there is none. */
static bool read_answer(int questions, const struct question *question,
                        struct inet_diag_msg *ret_answer)
{
    for (int i = 0; i < STALE_MAX; i++) {
        union {
            struct nlmsghdr header;
            char bytes[2048];
        } found;
        ssize_t length = recv(questions, found.bytes, sizeof(found.bytes), MSG_DONTWAIT);

        if (length < (ssize_t)sizeof(found.header))
            return false;
        if (found.header.nlmsg_seq != question->header.nlmsg_seq)
            continue;
        if (found.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            (size_t)length < NLMSG_LENGTH(sizeof(*ret_answer)))
            return false;
        memcpy(ret_answer, NLMSG_DATA(&found.header), sizeof(*ret_answer));
        return true;
    }
    return false;
}

bool socket_owner_find(int questions, const struct sockaddr *ours, const struct sockaddr *peer,
                       uint32_t *ret_uid)
{
    static uint32_t last_number;
    struct question question = {
        .header = {.nlmsg_len = sizeof(question),
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST,
                   .nlmsg_seq = ++last_number},
        .request = {.sdiag_family = (__u8)peer->sa_family,
                    .sdiag_protocol = IPPROTO_TCP,
                    .idiag_states = UINT32_MAX,
                    .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    struct inet_diag_msg answer;

    if (questions < 0 || ours->sa_family != peer->sa_family)
        return false;
    split_address(peer, question.request.id.idiag_src, &question.request.id.idiag_sport);
    split_address(ours, question.request.id.idiag_dst, &question.request.id.idiag_dport);
    if (send(questions, &question, sizeof(question), MSG_DONTWAIT | MSG_NOSIGNAL) !=
            (ssize_t)sizeof(question) ||
        !read_answer(questions, &question, &answer))
        return false;
    /* Without a connection of these ends the kernel finds a listening socket. A closed socket has
     * no inode, and its user reads as root. */
    if (!same_ends(&answer.id, &question.request.id) || answer.idiag_inode == 0)
        return false;
    *ret_uid = answer.idiag_uid;
    return true;
}
