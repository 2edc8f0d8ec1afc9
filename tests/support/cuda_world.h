/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine with NVIDIA's GPUs as CUDA shows them: the CUDA double (doubles/cuda_double.h), told
 * what machine it is.
 */
#ifndef TESTS_CUDA_WORLD_H
#define TESTS_CUDA_WORLD_H

#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/text.h"
#include "doubles/cuda_double.h"
#include "support/temporary_directory.h"

#define CUDA_WORLD_UUID_0 "GPU-00000000-1111-2222-3333-444444444440"
#define CUDA_WORLD_UUID_1 "GPU-00000000-1111-2222-3333-444444444441"

/* Two GPUs; CUDA's number 0 is the second, since it is the faster one. */
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

/* Has a double of CUDA loaded from now on: "" is today's; "-old", "-first-uuid", "-lacking". */
static inline void cuda_world_loads(struct cuda_world *world, const char *kind)
{
    const char *build = getenv("BERTH_BUILD_ROOT");

    if (build == NULL) {
        print_message("skip: BERTH_BUILD_ROOT is not set, so there is no double of CUDA\n");
        skip();
    }
    snprintf(world->library, sizeof(world->library), "%s/tests/libcuda%s.so.1", build, kind);
    assert_int_equal(setenv("BERTH_CUDA", world->library, 1), 0);
    assert_true(cuda_double_open(world->library, &world->cuda));
    world->cuda.restart(false);
}

/* What machine it is, for the next start. */
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
    cuda_world_loads(world, "");
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
