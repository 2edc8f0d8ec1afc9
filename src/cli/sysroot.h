/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the files of the machine are whose devices berth shows: at /, or below BERTH_SYSROOT.
 */
#ifndef CLI_SYSROOT_H
#define CLI_SYSROOT_H

#include <berth/error.h>

/* The directory that is put before paths of the machine: absolute and without a slash at its end,
 * "" for this machine. The caller frees it. Fails with BERTH_ERROR_MEMORY; *ret_prefix is untouched
 * then. */
int sysroot_find(char **ret_prefix, struct berth_error *error);

#endif
