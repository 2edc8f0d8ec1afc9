/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/devices/device_askers.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* The answer of the pool that uses a device. */
static const char in_use = 'u';

static void refuse_asker(int descriptor)
{
    send(descriptor, &in_use, sizeof(in_use), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void drop_gone(struct device_askers *askers)
{
    size_t kept = 0;

    for (size_t i = 0; i < askers->count; i++) {
        char nothing;

        if (recv(askers->descriptors[i], &nothing, sizeof(nothing), MSG_DONTWAIT | MSG_PEEK) == 0)
            close(askers->descriptors[i]);
        else
            askers->descriptors[kept++] = askers->descriptors[i];
    }
    askers->count = kept;
}

bool device_askers_accept(struct device_askers *askers, int listener)
{
    // cppcheck-suppress nullPointer ; as accept(2) has it
    int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int *descriptors;

    if (descriptor < 0)
        return false;
    drop_gone(askers);
    descriptors = askers->count < DEVICE_ASKERS_MAX
                      ? reallocarray(askers->descriptors, askers->count + 1, sizeof(*descriptors))
                      : NULL;
    if (descriptors == NULL) {
        close(descriptor);
        return false;
    }
    askers->descriptors = descriptors;
    askers->descriptors[askers->count++] = descriptor;
    return true;
}

void device_askers_refuse(struct device_askers *askers)
{
    askers->are_waiting = false;
    for (size_t i = 0; i < askers->count; i++)
        refuse_asker(askers->descriptors[i]);
}

void device_askers_refuse_last(const struct device_askers *askers)
{
    if (askers->count > 0)
        refuse_asker(askers->descriptors[askers->count - 1]);
}

void device_askers_finish(struct device_askers *askers)
{
    for (size_t i = 0; i < askers->count; i++)
        close(askers->descriptors[i]);
    free(askers->descriptors);
    *askers = (struct device_askers){0};
}
