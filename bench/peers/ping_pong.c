/* SPDX-License-Identifier: Apache-2.0
 *
 * Two processes that send a packet back and forth over a SEQPACKET socket: the minimum cost of
 * any daemon. Prints the nanoseconds per round trip. Run it on one CPU.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "../measure.h"

/* About the length of a short message. */
enum { LENGTH = 64 };

static void echo(int socket)
{
    char packet[LENGTH];
    ssize_t length;

    while ((length = recv(socket, packet, sizeof(packet), 0)) > 0) {
        if (send(socket, packet, (size_t)length, MSG_NOSIGNAL) < 0)
            break;
    }
    _exit(0);
}

static int64_t run_ping_pong(void *data, uint64_t count)
{
    int socket = *(int *)data;
    char packet[LENGTH] = {0};
    int64_t begin = now();

    for (uint64_t i = 0; i < count; i++) {
        if (send(socket, packet, sizeof(packet), MSG_NOSIGNAL) < 0 ||
            recv(socket, packet, sizeof(packet), 0) <= 0)
            give_up("a packet was lost");
    }
    return now() - begin;
}

int main(void)
{
    int sockets[2];
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) < 0 || (pid = fork()) < 0)
        give_up("cannot start a second process");
    if (pid == 0) {
        close(sockets[0]);
        echo(sockets[1]);
    }
    close(sockets[1]);
    printf("%.3f\n", quickest(run_ping_pong, &sockets[0]));
    return 0;
}
