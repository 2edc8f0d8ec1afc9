/* SPDX-License-Identifier: Apache-2.0
 *
 * The meaning and the names of CUDA's statuses.
 */
#include "support/unit.h"

#include "support/hardware/cuda_driver.h"

/* Every number up to 999 that is not DRIVER_UNSURE, independent of the table. */
static const short fine[] = {0,   1,   5,   6,   7,   8,   36,  101, 200, 202, 205, 206, 207, 208,
                             209, 210, 211, 212, 213, 215, 217, 218, 219, 221, 222, 223, 224, 225,
                             300, 301, 302, 303, 400, 401, 402, 500, 600, 701, 703, 704, 705, 708,
                             712, 713, 720, 800, 801, 811, 812, 900, 901, 902, 903, 904, 905, 906,
                             907, 908, 910, 912, 913, 914, 915, 917, 918, -1};
static const short retry[] = {2, 46, 102, 216, 304, 711, 802, 805, 807, 808, 809, 909, -1};
static const short rebuild[] = {214, 226, 700, 702, 709, 710, 714, 715,
                                716, 717, 718, 719, 721, 806, 911, -1};
static const short give_up[] = {3, 4, 34, 100, 220, 803, 804, 810, -1};

static bool has(const short *list, int status)
{
    while (*list >= 0 && *list != status)
        list++;
    return *list >= 0;
}

static void every_status_has_its_class(void **state)
{
    (void)state;
    for (int status = -10; status < 1100; status++) {
        enum driver_verdict wanted = has(fine, status)      ? DRIVER_FINE
                                     : has(retry, status)   ? DRIVER_RETRY
                                     : has(rebuild, status) ? DRIVER_REBUILD
                                     : has(give_up, status) ? DRIVER_GIVE_UP
                                                            : DRIVER_UNSURE;

        if (cuda_driver.classify(status) != wanted)
            fail_msg("status %d: expected %d, got %d", status, wanted,
                     cuda_driver.classify(status));
    }
    assert_int_equal(cuda_driver.classify(INT32_MIN), DRIVER_UNSURE);
    assert_int_equal(cuda_driver.classify(INT32_MAX), DRIVER_UNSURE);
}

static void the_library_names_what_it_knows(void **state)
{
    struct cuda_world *world = *state;
    struct driver *driver = cuda_driver_start(world);

    assert_string_equal(cuda_driver.name_status(driver, 700), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_string_equal(cuda_driver.name_status(driver, 1234), "CUDA_ERROR_OF_TOMORROW");
    /* The name comes from berth, not from the library. */
    assert_string_equal(cuda_driver.name_status(driver, 803), "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    assert_null(cuda_driver.name_status(driver, 1235));
    assert_null(cuda_driver.name_status(driver, -1));
    free(driver);
}

static void names_that_cannot_be_are_not_followed(void **state)
{
    struct cuda_world *world = *state;
    struct driver *driver = cuda_driver_start(world);
    char questions[64];

    world->cuda.lie("cuGetErrorName", CUDA_DOUBLE_ANY, 0, CUDA_DOUBLE_ALWAYS);
    assert_string_equal(cuda_driver.name_status(driver, 700), "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_null(cuda_driver.name_status(driver, 1234));
    world->cuda.lie("cuGetErrorName", CUDA_DOUBLE_ANY, 1, CUDA_DOUBLE_ALWAYS);
    memset(questions, '?', sizeof(questions));
    questions[63] = '\0';
    assert_string_equal(cuda_driver.name_status(driver, 700), questions);
    free(driver);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, cuda_world_enter, cuda_world_leave)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_class),
        TEST(the_library_names_what_it_knows),
        TEST(names_that_cannot_be_are_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
