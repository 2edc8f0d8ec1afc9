/* SPDX-License-Identifier: Apache-2.0
 *
 * The meaning and the names of OpenCL's statuses.
 */
#include "support/unit.h"

#include <string.h>

#include "context/context_driver.h"

static void every_status_has_its_class(void **state)
{
    /* The statuses that are not mistakes; mistakes do not change the context. */
    static const struct {
        int status;
        enum driver_verdict verdict;
    } others[] = {
        {-2, DRIVER_RETRY},      {-4, DRIVER_RETRY},      {-5, DRIVER_UNSURE},
        {-6, DRIVER_RETRY},      {-12, DRIVER_RETRY},     {-14, DRIVER_UNSURE},
        {-33, DRIVER_UNSURE},    {-34, DRIVER_UNSURE},    {-36, DRIVER_UNSURE},
        {-1121, DRIVER_REBUILD}, {-9999, DRIVER_REBUILD},
    };

    (void)state;
    for (int status = 1; status >= -12000; status--) {
        bool is_known = opencl_driver.name_status(NULL, status) != NULL;
        enum driver_verdict wanted = is_known ? DRIVER_FINE : DRIVER_UNSURE;

        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
            if (others[i].status == status) {
                assert_true(is_known);
                wanted = others[i].verdict;
            }
        }
        if (opencl_driver.classify(status) != wanted)
            fail_msg("%d: got %d, expected %d", status, opencl_driver.classify(status), wanted);
    }
    assert_int_equal(opencl_driver.classify(0), DRIVER_FINE);
    assert_int_equal(opencl_driver.classify(1), DRIVER_UNSURE);
    assert_int_equal(opencl_driver.classify(INT32_MIN), DRIVER_UNSURE);
}

static void every_status_has_its_name(void **state)
{
    (void)state;
    assert_string_equal(opencl_driver.name_status(NULL, 0), "CL_SUCCESS");
    assert_string_equal(opencl_driver.name_status(NULL, -5), "CL_OUT_OF_RESOURCES");
    assert_string_equal(opencl_driver.name_status(NULL, -1001), "CL_PLATFORM_NOT_FOUND_KHR");
    assert_string_equal(opencl_driver.name_status(NULL, -9999), "CL_ILLEGAL_ACCESS_NV");
    assert_null(opencl_driver.name_status(NULL, -20));
    assert_null(opencl_driver.name_status(NULL, 1));
    /* Each number has one name, and each name one number. */
    for (int one = 0; one >= -1200; one--) {
        const char *name = opencl_driver.name_status(NULL, one);

        for (int other = one - 1; name != NULL && other >= -1200; other--) {
            const char *second = opencl_driver.name_status(NULL, other);

            assert_true(second == NULL || strcmp(name, second) != 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_class),
        cmocka_unit_test(every_status_has_its_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
