/* SPDX-License-Identifier: Apache-2.0
 *
 * berth/error.h: error codes and messages.
 *
 * A call that can fail returns 0 (or a non-negative result that its comment names) on success and
 * one of the negative codes below on failure. If its last parameter is a `struct berth_error *`, it
 * also writes a message of one line there. The caller owns the buffer, which needs no clean-up. The
 * parameter may be NULL.
 */
#ifndef BERTH_ERROR_H
#define BERTH_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Keep the symbols visible in programs that are compiled with hidden visibility. */
#pragma GCC visibility push(default)

/* X(name, number, description). Numbers are part of the ABI: never renumber, only append. */
#define BERTH_ERROR_LIST(X)                                           \
    X(INVALID, 1, "invalid argument")                                 \
    X(MEMORY, 2, "out of memory")                                     \
    X(IO, 3, "input or output failed")                                \
    X(NOT_FOUND, 4, "not found")                                      \
    X(SYNTAX, 5, "text that does not parse")                          \
    X(RANGE, 6, "number out of range")                                \
    X(LIMIT, 7, "too large, too deep or too many")                    \
    X(IMPOSSIBLE, 8, "no device here can ever satisfy the request")   \
    X(PERMISSION, 9, "permission denied")                             \
    X(NO_DEVICE, 10, "there is no device here")                       \
    X(BUSY, 11, "no free device")                                     \
    X(TIMED_OUT, 12, "not granted in time")                           \
    X(CANCELLED, 13, "cancelled while it waited")                     \
    X(FORKED, 14, "the pool was opened before fork()")                \
    X(LOST, 15, "the context was lost to a fault of its device")      \
    X(STALE, 16, "the handle names a context that was rebuilt since") \
    X(DRIVER, 17, "the device's driver failed")

/* The codes: BERTH_ERROR_INVALID is -1, and so on. */
enum berth_error_code {
#define BERTH_ERROR_ENUM(name, number, description) BERTH_ERROR_##name = -(number),
    BERTH_ERROR_LIST(BERTH_ERROR_ENUM)
#undef BERTH_ERROR_ENUM
};

#define BERTH_ERROR_MESSAGE_SIZE 512

/* The caller's buffer. `message` is always terminated, valid UTF-8 and one line; it is empty until
 * the first failure. A longer message is cut and ends in "...". */
struct berth_error {
    int code;
    char message[BERTH_ERROR_MESSAGE_SIZE];
};

#define BERTH_ERROR_INIT \
    {                    \
        0, ""            \
    }

/* Returns a short description of a code, such as "out of memory"; "no error" for 0, and "unknown
 * error" for other numbers. The text is static. Never blocks; any thread may call it. */
const char *berth_error_describe(int code);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
