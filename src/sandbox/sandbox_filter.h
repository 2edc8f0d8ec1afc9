/* SPDX-License-Identifier: Apache-2.0
 *
 * The seccomp filters of the profiles. For sandbox.c only.
 */
#ifndef SANDBOX_SANDBOX_FILTER_H
#define SANDBOX_SANDBOX_FILTER_H

#include "sandbox/sandbox.h"

/* Loads the profile's filter into the kernel. Sets no_new_privs. Returns 0 or a negative errno. */
int sandbox_filter_load(enum sandbox_profile profile);

#endif
