/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/exit_codes.h"

int exit_code_of_refusal(int error_code)
{
    switch (error_code) {
    case BERTH_ERROR_INVALID:
        return EXIT_USAGE;
    case BERTH_ERROR_IMPOSSIBLE:
    case BERTH_ERROR_NO_DEVICE:
        return EXIT_IMPOSSIBLE;
    case BERTH_ERROR_BUSY:
    case BERTH_ERROR_TIMED_OUT:
    case BERTH_ERROR_CANCELLED:
        return EXIT_NOT_GRANTED;
    default:
        return EXIT_BERTH;
    }
}

int exit_code_of_start(int error_code)
{
    switch (error_code) {
    case BERTH_ERROR_NOT_FOUND:
        return EXIT_NO_COMMAND;
    case BERTH_ERROR_MEMORY:
    case BERTH_ERROR_LIMIT:
    case BERTH_ERROR_CANCELLED:
        return EXIT_BERTH;
    default:
        return EXIT_NOT_EXECUTABLE;
    }
}

int exit_code_of_end(enum lease_end end)
{
    switch (end) {
    case LEASE_END_RELEASED:
    case LEASE_END_DIED:
        return EXIT_GOOD;
    case LEASE_END_EXPIRED:
        return EXIT_TIME_LIMIT;
    case LEASE_END_REVOKED:
    case LEASE_END_STOPPED:
    case LEASE_END_PARENT:
    case LEASE_END_IDLE:
        return EXIT_REVOKED;
    case LEASE_END_CANCELLED:
    case LEASE_END_TIMED_OUT:
        return EXIT_NOT_GRANTED;
    case LEASE_END_IMPOSSIBLE:
        return EXIT_IMPOSSIBLE;
    }
    return EXIT_BERTH;
}
