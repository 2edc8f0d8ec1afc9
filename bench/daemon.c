/* SPDX-License-Identifier: Apache-2.0
 *
 * Measures the daemon as a client sees it, over connections that are open already.
 *
 *     daemon SOCKET MODE [WAITING] [PID]
 *
 * Prints one number: nanoseconds per operation, unless the mode says otherwise. The comments of the
 * functions describe the modes. The pool has DEVICES devices, all free. Run it on the daemon's CPU,
 * as bench/run does. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "measure.h"
#include "model/request.h"
#include "wire/wire.h"

enum { DEVICES = 8, CONNECTIONS = 8 };

/* ---- A client ---- */

struct client {
    int sockets[CONNECTIONS];
    struct request request;
    struct text out;
    unsigned char in[WIRE_MESSAGE_MAX];
    uint64_t last_number;
    uint64_t last_token;
};

static int connect_to(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int connected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (strlen(path) >= sizeof(name.sun_path))
        give_up("the path of the socket is too long");
    memcpy(name.sun_path, path, strlen(path));
    if (connected < 0 || connect(connected, (struct sockaddr *)&name, sizeof(name)) < 0)
        give_up("cannot connect to %s", path);
    return connected;
}

static void send_message(struct client *client, size_t connection, struct wire_message *message)
{
    text_clear(&client->out);
    if (wire_encode(message, &client->out, NULL) < 0)
        give_up("cannot encode a message");
    if (send(client->sockets[connection], client->out.bytes, client->out.length, MSG_NOSIGNAL) < 0)
        give_up("cannot send a message to the daemon");
}

/* Receives the next message; the caller finishes it. A refusal ends the program. */
static struct wire_message receive(struct client *client, size_t connection)
{
    ssize_t length = recv(client->sockets[connection], client->in, sizeof(client->in), 0);
    struct wire_message message;

    if (length <= 0 || wire_decode(client->in, (size_t)length, &message, NULL) < 0)
        give_up("the daemon is gone");
    if (message.type == WIRE_REFUSED || message.type == WIRE_CLOSING)
        give_up("the daemon refuses: %s", message.text);
    return message;
}

static uint64_t send_claim(struct client *client, size_t connection)
{
    struct wire_message message = {
        .type = WIRE_CLAIM,
        .number = ++client->last_number,
        .token = {++client->last_token, 1},
        .request = &client->request,
        .hold = LEASE_HOLD_CONNECTION,
    };

    send_message(client, connection, &message);
    return message.number;
}

/* A message without a number gets no answer. */
static void send_release(struct client *client, size_t connection, uint64_t id, uint64_t number)
{
    struct wire_message message = {.type = WIRE_RELEASE, .number = number, .id = id};

    send_message(client, connection, &message);
}

/* Returns the id in the next message, which must have this type. */
static uint64_t expect(struct client *client, size_t connection, enum wire_type type)
{
    struct wire_message message = receive(client, connection);
    uint64_t id = message.id;

    if (message.type != type)
        give_up("expected %s, got %s", wire_type_name(type), wire_type_name(message.type));
    wire_message_finish(&message);
    return id;
}

/* ---- claim, ahead ---- */

/* Claims and releases with all devices free, and waits for each answer. */
static int64_t run_claim(void *data, uint64_t count)
{
    struct client *client = data;
    int64_t begin = now();

    for (uint64_t i = 0; i < count; i++) {
        send_claim(client, 0);
        send_release(client, 0, expect(client, 0, WIRE_GRANTED), ++client->last_number);
        expect(client, 0, WIRE_DONE);
    }
    return now() - begin;
}

/* The same, but releases request no answer. */
static int64_t run_ahead(void *data, uint64_t count)
{
    struct client *client = data;
    int64_t begin = now();

    for (uint64_t i = 0; i < count; i++) {
        send_claim(client, 0);
        send_release(client, 0, expect(client, 0, WIRE_GRANTED), 0);
    }
    return now() - begin;
}

/* ---- handoff, memory ---- */

/* Claims on all connections in turn: the first DEVICES from `first` on hold a device, the others
 * wait, the longest wait first. */
struct queue {
    struct client *client;
    size_t count;
    size_t first;
    uint64_t *ids; /* of the claim at each position; 0: not granted yet */
};

static size_t connection_of(size_t place)
{
    return place % CONNECTIONS;
}

/* Reads until the claim at this position is granted. Claims are granted in order, so other messages
 * on its connection are answers to a release or to a claim. */
static void await_grant(struct queue *queue, size_t place)
{
    for (;;) {
        struct wire_message message = receive(queue->client, connection_of(place));
        enum wire_type type = message.type;

        queue->ids[place] = message.id;
        wire_message_finish(&message);
        if (type == WIRE_GRANTED)
            return;
    }
}

static void claim_at(struct queue *queue, size_t place)
{
    queue->ids[place] = 0;
    send_claim(queue->client, connection_of(place));
}

static void queue_up(struct queue *queue)
{
    for (size_t i = 0; i < queue->count; i++) {
        claim_at(queue, i);
        if (i < DEVICES)
            await_grant(queue, i);
        else
            expect(queue->client, connection_of(i), WIRE_WAITING);
    }
}

/* Releases a device, which goes to the claim that has waited longest, and makes a new claim that
 * waits. */
static int64_t run_handoff(void *data, uint64_t count)
{
    struct queue *queue = data;
    int64_t begin = now();

    for (uint64_t i = 0; i < count; i++) {
        size_t place = queue->first;

        send_release(queue->client, connection_of(place), queue->ids[place],
                     ++queue->client->last_number);
        await_grant(queue, (place + DEVICES) % queue->count);
        claim_at(queue, place);
        queue->first = (place + 1) % queue->count;
    }
    return now() - begin;
}

static struct queue open_queue(struct client *client, size_t waiting)
{
    struct queue queue = {.client = client, .count = DEVICES + waiting};

    queue.ids = calloc(queue.count, sizeof(*queue.ids));
    if (queue.ids == NULL || queue.count % CONNECTIONS != 0)
        give_up("expected a multiple of %d claims, and memory for them", CONNECTIONS);
    queue_up(&queue);
    return queue;
}

static double time_of_handoff(struct client *client, size_t waiting, const char *pid)
{
    struct queue queue = open_queue(client, waiting);
    double time = quickest(run_handoff, &queue);

    (void)pid;
    free(queue.ids);
    return time;
}

/* Returns the resident memory of a process, in bytes. */
static double bytes_resident(const char *pid)
{
    char path[64];
    size_t pages = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%s/statm", pid);
    file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%*u %zu", &pages) != 1)
        give_up("cannot read %s", path);
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* Returns by how many bytes the daemon grows for each waiting claim. */
static double memory_of_claim(struct client *client, size_t waiting, const char *pid)
{
    double before;

    /* After this, the daemon has made its one-time allocations. */
    run_claim(client, 1000);
    before = bytes_resident(pid);
    free(open_queue(client, waiting).ids);
    return (bytes_resident(pid) - before) / (double)waiting;
}

/* ---- The command line ---- */

struct mode {
    const char *name;
    int words;                                    /* number of arguments after its name */
    int64_t (*run)(void *client, uint64_t count); /* timed by quickest(); NULL: `measure` */
    double (*measure)(struct client *client, size_t waiting, const char *pid);
};

static const struct mode modes[] = {
    {"claim", 0, run_claim, NULL},
    {"ahead", 0, run_ahead, NULL},
    {"handoff", 1, NULL, time_of_handoff},
    {"memory", 2, NULL, memory_of_claim},
};

static const struct mode *find_mode(int argc, char **argv)
{
    for (size_t i = 0; argc > 2 && i < sizeof(modes) / sizeof(modes[0]); i++) {
        if (strcmp(argv[2], modes[i].name) == 0 && argc == 3 + modes[i].words)
            return &modes[i];
    }
    give_up("usage: daemon SOCKET claim|ahead|handoff WAITING|memory WAITING PID");
}

int main(int argc, char **argv)
{
    static struct client client;
    const struct mode *mode = find_mode(argc, argv);
    size_t waiting = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;

    client.last_token = (uint64_t)now();
    request_init(&client.request);
    for (size_t i = 0; i < CONNECTIONS; i++)
        client.sockets[i] = connect_to(argv[1]);
    printf("%.3f\n", mode->run != NULL ? quickest(mode->run, &client)
                                       : mode->measure(&client, waiting, argc > 4 ? argv[4] : ""));
    return 0;
}
