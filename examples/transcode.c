/* SPDX-License-Identifier: Apache-2.0
 *
 * A small transcoder: threads that share the GPUs of a pool, with the CPU where there are none.
 *
 *     cc -o transcode transcode.c $(pkg-config --cflags --libs berth)
 *     ./transcode                         # this machine's GPUs
 *     ./transcode workstation.yaml        # the devices of an inventory
 *     ./transcode workstation.yaml RTX    # videos only on those with RTX in their name
 *
 * Workers take videos from a counter; each claims a device, encodes, and releases the device.
 * Meanwhile a helper makes thumbnails on a spare device, until a worker waits for it. There is no
 * GPU code here: checksums stand for the work. The program counts the users of each device and
 * fails if there are ever two at once.
 */
#include <berth/berth.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS = 6, VIDEOS = 60, FRAMES = 20, FRAME_BYTES = 1 << 15 };

/* How long a video waits for a device before it uses the CPU. */
static const int64_t timeout = INT64_C(5000000000);

/* A device, or the CPU. */
struct place {
    atomic_uint users; /* at this moment */
    atomic_uint videos;
    atomic_uint thumbnails;
};

static struct berth_pool *pool;
static struct berth_request *request;
static struct place *devices; /* by slot */
static struct place cpu;
static atomic_uint next_video;
static _Atomic uint64_t checksum; /* of all videos: the same wherever they were encoded */
static atomic_bool has_failed;

static void fail(const struct berth_error *error)
{
    fprintf(stderr, "transcode: %s\n", error->message);
    has_failed = true;
}

/* Each holder of a device marks it, so that a second holder would be noticed. */
static struct place *enter_device(size_t slot)
{
    if (devices[slot].users++ != 0) {
        fprintf(stderr, "transcode: two at once on the device of slot %zu\n", slot);
        has_failed = true;
    }
    return &devices[slot];
}

static uint64_t encode_frame(uint64_t seed)
{
    unsigned char frame[FRAME_BYTES];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < sizeof(frame); i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1;
        frame[i] = (unsigned char)(seed >> 56);
    }
    for (size_t i = 0; i < sizeof(frame); i++)
        hash = (hash ^ frame[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* ---- The workers ---- */

static void encode_video(unsigned video, struct place *place)
{
    for (unsigned frame = 0; frame < FRAMES; frame++)
        checksum += encode_frame((uint64_t)video << 32 | frame);
    place->videos++;
}

static void encode_on_device(unsigned video, struct berth_lease lease)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct berth_lease_device leased;
    struct place *device;

    if (berth_lease_devices(pool, lease, &leased, 1, &error) < 0) {
        fail(&error);
        return;
    }
    device = enter_device(leased.slot);
    encode_video(video, device);
    device->users--;
    if (berth_release(pool, lease, &error) < 0)
        fail(&error);
}

static void *work(void *unused)
{
    unsigned video;

    while ((video = next_video++) < VIDEOS) {
        struct berth_error error = BERTH_ERROR_INIT;
        struct berth_lease lease;

        switch (berth_claim(pool, request, timeout, &lease, &error)) {
        case 0:
            encode_on_device(video, lease);
            break;
        case BERTH_ERROR_NO_DEVICE:  /* the pool is empty */
        case BERTH_ERROR_IMPOSSIBLE: /* no device here can ever serve it */
        case BERTH_ERROR_TIMED_OUT:
            encode_video(video, &cpu);
            break;
        default:
            fail(&error);
        }
    }
    return unused;
}

/* ---- The helper, which has at most one device ---- */

static struct {
    sem_t news; /* posted for a lease, and at the end */
    struct berth_lease lease;
    size_t slot;
    atomic_bool must_stop;
    _Atomic uint64_t checksum;
} helper;

/* Callbacks run in the thread that caused them, so they must be short: the helper has its own
 * thread. */
static bool offer(void *unused, struct berth_lease lease, const struct berth_lease_device *device)
{
    (void)unused;
    helper.lease = lease;
    helper.slot = device->slot;
    helper.must_stop = false;
    sem_post(&helper.news);
    return true;
}

static void take_back(void *unused, struct berth_lease lease)
{
    (void)unused;
    (void)lease; /* the only lease of the helper */
    helper.must_stop = true;
}

static void *help(void *unused)
{
    for (;;) {
        struct berth_lease lease;
        struct place *device;

        while (sem_wait(&helper.news) < 0)
            continue; /* interrupted by a signal */
        lease = helper.lease;
        if (lease.id == 0)
            return unused;
        device = enter_device(helper.slot);
        do
            helper.checksum += encode_frame(device->thumbnails++);
        while (!helper.must_stop);
        device->users--;
        helper.lease.id = 0;
        berth_release(pool, lease, NULL); /* may make the next offer */
    }
}

/* ---- The main program ---- */

static pthread_t start(void *(*run)(void *))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, run, NULL) != 0)
        abort();
    return thread;
}

static int transcode(struct berth_error *error)
{
    const struct berth_arbiter_options options = {
        .size = sizeof(options), .max = 1, .offer = offer, .take_back = take_back};
    struct berth_arbiter *arbiter;
    pthread_t threads[WORKERS + 1];

    sem_init(&helper.news, 0, 0);
    devices = calloc(berth_pool_capacity(pool) + 1, sizeof(*devices));
    if (devices == NULL)
        abort();
    if (berth_arbiter_start(pool, &options, &arbiter, error) < 0)
        return error->code;
    threads[WORKERS] = start(help);
    for (int i = 0; i < WORKERS; i++)
        threads[i] = start(work);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    berth_arbiter_stop(arbiter); /* no more offers */
    helper.must_stop = true;
    sem_post(&helper.news);
    pthread_join(threads[WORKERS], NULL);
    return 0;
}

static void print_row(const char *name, const struct place *place)
{
    printf("%-34s %6u %10u\n", name, place->videos, place->thumbnails);
}

static void report(void)
{
    printf("%-34s %6s %10s\n", "WHERE", "VIDEOS", "THUMBNAILS");
    for (size_t slot = 0; slot < berth_pool_capacity(pool); slot++) {
        struct berth_device device;

        if (berth_pool_device(pool, slot, &device, NULL) == 0)
            print_row(device.name != NULL ? device.name : "GPU", &devices[slot]);
    }
    print_row("CPU", &cpu);
    printf("checksum %016llx\n", (unsigned long long)checksum);
}

static int open_pool(const char *inventory, const char *model, struct berth_error *error)
{
    const struct berth_pool_options options = {.size = sizeof(options), .policy = "round-robin"};
    int code;

    if (inventory == NULL)
        code = berth_pool_open(&options, &pool, error);
    else
        code = berth_pool_open_inventory(inventory, &options, &pool, error);
    if (code == 0)
        code = berth_request_create(&request, error);
    if (code == 0 && model != NULL)
        code = berth_request_set(request, "model", model, error);
    return code;
}

int main(int argc, char **argv)
{
    struct berth_error error = BERTH_ERROR_INIT;

    if (open_pool(argc > 1 ? argv[1] : NULL, argc > 2 ? argv[2] : NULL, &error) < 0 ||
        transcode(&error) < 0)
        fail(&error);
    else
        report();
    berth_request_destroy(request);
    berth_pool_close(pool);
    free(devices);
    return has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
