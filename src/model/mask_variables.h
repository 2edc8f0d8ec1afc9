/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of the environment that a helper program is not to inherit, or not as they are.
 */
#ifndef MODEL_MASK_VARIABLES_H
#define MODEL_MASK_VARIABLES_H

/* Not inherited: what hides devices, what says that a process belongs to a lease, and what the
 * service manager says to one process only. Ended by NULL. */
extern const char *const inherited_variables[];

/* Name files by which the hardware is read. Ended by NULL. */
extern const char *const hardware_variables[];

#endif
