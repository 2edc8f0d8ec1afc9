/* SPDX-License-Identifier: Apache-2.0
 *
 * The OpenCL driver over the double of OpenCL (doubles/opencl_machine.h).
 */
#ifndef TESTS_OPENCL_WORLD_H
#define TESTS_OPENCL_WORLD_H

#include "support/hardware/double_log.h"
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/text.h"
#include "context/context_driver.h"
#include "context/opencl_internal.h"
#include "support/assert_error.h"
#include "support/temporary_directory.h"

struct opencl_world {
    void *directory;
    struct text library;
    struct driver *driver; /* NULL until world_open */
    struct berth_error error;
};

/* Describes the double's machine from now on. */
static inline void world_says(const char *statements)
{
    FILE *file = fopen("machine.new", "we");

    assert_non_null(file);
    assert_true(fputs(statements, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename("machine.new", "machine"), 0);
}

static inline int world_enter(void **state)
{
    struct opencl_world *world = calloc(1, sizeof(*world));
    const char *build = getenv("BERTH_BUILD_ROOT");
    struct text path = {0};

    if (world == NULL || temporary_directory_enter(&world->directory) < 0)
        return -1;
    text_append_format(&path, "%s/machine", (char *)world->directory);
    setenv("OPENCL_DOUBLE", text_string(&path), 1);
    text_append(&path, ".log");
    setenv("OPENCL_DOUBLE_LOG", text_string(&path), 1);
    text_finish(&path);
    if (build != NULL)
        text_append_format(&world->library, "%s/tests/libOpenCL-double.so.1", build);
    *state = world;
    return 0;
}

static inline int world_leave(void **state)
{
    struct opencl_world *world = *state;
    int result = temporary_directory_leave(&world->directory);

    unsetenv("OPENCL_DOUBLE");
    unsetenv("OPENCL_DOUBLE_LOG");
    text_finish(&world->library);
    opencl_destroy((struct opencl *)world->driver);
    free(world);
    return result;
}

/* Opens the driver on the machine of these statements. */
static inline int world_open(struct opencl_world *world, const char *statements)
{
    if (world->library.length == 0) {
        print_message("skip: BERTH_BUILD_ROOT is not set, so there is no double of OpenCL\n");
        skip();
    }
    world_says(statements);
    opencl_destroy((struct opencl *)world->driver);
    world->driver = NULL;
    return opencl_driver.open(text_string(&world->library), &world->driver, &world->error);
}

/* Opens the driver, which must succeed. */
static inline void world_start(struct opencl_world *world, const char *statements)
{
    assert_int_equal(world_open(world, statements), 0);
}

#define WORLD_NVIDIA "platform\nname NVIDIA CUDA\nvendor NVIDIA Corporation\n"
#define WORLD_AMD    "platform\nname AMD APP\nvendor Advanced Micro Devices, Inc.\n"
#define WORLD_INTEL  "platform\nname Intel(R) OpenCL Graphics\nvendor Intel(R) Corporation\n"
#define WORLD_POCL   "platform\nname Portable Computing Language\nvendor The pocl project\n"
#define WORLD_MESA   "platform\nname rusticl\nvendor Mesa/X.org\n"

#endif
