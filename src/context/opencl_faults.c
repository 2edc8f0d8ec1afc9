/* SPDX-License-Identifier: Apache-2.0 */
#include "base/count.h"
#include "context/opencl_internal.h"

static const struct {
    int status;
    enum driver_verdict verdict;
    const char *name;
} statuses[] = {
#define STATUS(word, number, verdict) {(number), DRIVER_##verdict, "CL_" #word},
    OPENCL_STATUSES(STATUS) OPENCL_OTHER_STATUSES(STATUS)
#undef STATUS
};

/* Returns its position in the table; COUNT(statuses) if it is missing. */
static size_t find_status(int status)
{
    size_t i = 0;

    while (i < COUNT(statuses) && statuses[i].status != status)
        i++;
    return i;
}

enum driver_verdict opencl_classify(int status)
{
    size_t index = find_status(status);

    return index < COUNT(statuses) ? statuses[index].verdict : DRIVER_UNSURE;
}

const char *opencl_name_status(struct driver *driver, int status)
{
    size_t index = find_status(status);

    (void)driver;
    return index < COUNT(statuses) ? statuses[index].name : NULL;
}
