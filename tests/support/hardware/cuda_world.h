/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine with NVIDIA GPUs as the CUDA double (doubles/cuda_double.h) shows them.
 */
#ifndef TESTS_CUDA_WORLD_H
#define TESTS_CUDA_WORLD_H

#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text/text.h"
#include "doubles/cuda_double.h"
#include "support/temporary_directory.h"

#define CUDA_WORLD_UUID_0 "GPU-00000000-1111-2222-3333-444444444440"
#define CUDA_WORLD_UUID_1 "GPU-00000000-1111-2222-3333-444444444441"

/* Two GPUs. The second one is CUDA's number 0, because it is faster. */
#define CUDA_WORLD_TWO                   \
    "gpu\n"                              \
    "  uuid " CUDA_WORLD_UUID_0 "\n"     \
    "  pci 0000:07:00.0\n"               \
    "  name NVIDIA T4\n"                 \
    "  memory 16000000000 15000000000\n" \
    "gpu\n"                              \
    "  uuid " CUDA_WORLD_UUID_1 "\n"     \
    "  pci 0000:47:00.0\n"               \
    "  name NVIDIA A100\n"               \
    "  memory 80000000000 20000000000\n" \
    "  speed 1\n"

struct cuda_world {
    void *directory;
    struct cuda_double cuda;
    char library[512];
};

/* Makes berth load this library from now on. */
static inline void cuda_world_loads(struct cuda_world *world, const char *file)
{
    snprintf(world->library, sizeof(world->library), "%s", file);
    assert_int_equal(setenv("BERTH_CUDA", world->library, 1), 0);
    assert_true(cuda_double_open(world->library, &world->cuda));
    world->cuda.restart(false);
}

/* Makes berth load the double from now on. */
static inline void cuda_world_load(struct cuda_world *world)
{
    const char *build = getenv("BERTH_BUILD_ROOT");
    char file[512];

    if (build == NULL) {
        print_message("skip: BERTH_BUILD_ROOT is not set, so there is no double of CUDA\n");
        skip();
    }
    snprintf(file, sizeof(file), "%s/tests/libcuda.so.1", build);
    cuda_world_loads(world, file);
}

/* Makes berth load a copy of the double without these functions ("cuInit cuDeviceGet"): in the copy
 * they have other names. */
static inline void cuda_world_lacks(struct cuda_world *world, const char *functions)
{
    static unsigned copies;
    static char bytes[1 << 20];
    char names[512];
    char file[64];
    char *rest = names;
    FILE *stream = fopen(world->library, "re");
    size_t length;

    assert_non_null(stream);
    length = fread(bytes, 1, sizeof(bytes), stream);
    fclose(stream);
    assert_true(length > 0 && length < sizeof(bytes));
    snprintf(names, sizeof(names), "%s", functions);
    for (char *name = strsep(&rest, " "); name != NULL; name = strsep(&rest, " ")) {
        char *place = bytes;
        bool is_there = false;

        while ((place = memmem(place, (size_t)(bytes + length - place), name, strlen(name) + 1)) !=
               NULL) {
            *place = '#';
            is_there = true;
        }
        assert_true(is_there);
    }
    snprintf(file, sizeof(file), "./libcuda-%u.so", copies++);
    stream = fopen(file, "we");
    assert_non_null(stream);
    assert_int_equal(fwrite(bytes, 1, length, stream), length);
    assert_int_equal(fclose(stream), 0);
    cuda_world_loads(world, file);
}

/* The functions that drivers before CUDA 11.4, and before CUDA 9.2, do not have. */
#define CUDA_WORLD_BEFORE_11_4 "cuDeviceGetUuid_v2"
#define CUDA_WORLD_BEFORE_9_2                                          \
    "cuDeviceGetUuid_v2 cuDeviceGetUuid cuDevicePrimaryCtxRelease_v2 " \
    "cuDevicePrimaryCtxReset_v2 cuDevicePrimaryCtxSetFlags_v2"

/* Describes the machine for the next start of the double. */
static inline void cuda_world_says(const char *statements)
{
    FILE *file = fopen("cuda", "we");

    assert_non_null(file);
    assert_true(fputs(statements, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* A setup function for cmocka: two GPUs, the driver not started. The state is a cuda_world. */
static inline int cuda_world_enter(void **state)
{
    struct cuda_world *world = calloc(1, sizeof(*world));
    struct text path = {0};

    if (world == NULL || temporary_directory_enter(&world->directory) < 0)
        return -1;
    text_append_format(&path, "%s/cuda", (char *)world->directory);
    setenv("CUDA_DOUBLE", text_string(&path), 1);
    text_finish(&path);
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    *state = world;
    cuda_world_says(CUDA_WORLD_TWO);
    cuda_world_load(world);
    return 0;
}

static inline int cuda_world_leave(void **state)
{
    struct cuda_world *world = *state;
    int result;

    unsetenv("BERTH_CUDA");
    unsetenv("CUDA_DOUBLE");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_DEVICE_ORDER");
    result = temporary_directory_leave(&world->directory);
    free(world);
    return result;
}

#endif
