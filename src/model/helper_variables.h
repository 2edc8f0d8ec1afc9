/* SPDX-License-Identifier: Apache-2.0
 *
 * Environment variables that a helper program must not inherit, or must not inherit unchanged.
 */
#ifndef MODEL_HELPER_VARIABLES_H
#define MODEL_HELPER_VARIABLES_H

/* Variables that are not inherited: those that hide devices, those that mark a process of a lease,
 * and those that the service manager sets for one process only. Terminated by NULL. */
extern const char *const helper_variables_dropped[];

/* Variables that name files for reading the hardware. Terminated by NULL. */
extern const char *const helper_variables_paths[];

#endif
