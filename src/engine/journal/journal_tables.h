/* SPDX-License-Identifier: Apache-2.0
 *
 * The members of an event by their tags; only the journal includes this.
 */
#ifndef ENGINE_JOURNAL_JOURNAL_TABLES_H
#define ENGINE_JOURNAL_JOURNAL_TABLES_H

#include "codec/tagged.h"

/* struct engine_event, but for type and time. */
extern const struct tagged_table journal_event_table;

#endif
