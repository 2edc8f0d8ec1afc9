/* SPDX-License-Identifier: Apache-2.0
 *
 * Work in pieces of which one may hang while the others are needed: reading the files of several
 * devices to number them, say. The pieces are done in a thread beside. One that takes too long is
 * given up: its thread is left behind, and another goes on. For as long as a thread hangs in a
 * piece, that piece is not tried again. Not for use by two threads at once.
 */
#ifndef HARDWARE_AMD_PATIENT_H
#define HARDWARE_AMD_PATIENT_H

#include <berth/error.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is kept of the pieces that hang. */
struct abandonable_reads;

int abandonable_reads_create(struct abandonable_reads **ret_patient, struct berth_error *error);
/* Leaves threads that hang behind, with what they use. NULL is fine. */
void abandonable_reads_destroy(struct abandonable_reads *reads);

struct abandonable_reads_work {
    /* Does one piece. Runs in another thread, perhaps until long after, so that it must not use
     * anything but what it is given. */
    void (*run)(const void *shared, uint64_t piece, void *result);
    /* Frees what is shared, when nobody uses it any more. */
    void (*finish)(void *shared);
    size_t result_size;
};

/* The most pieces that may hang at once: then nothing of it is to be believed. */
#define ABANDONABLE_READS_HANGING_MAX 8

/* Does the pieces, named by numbers, in order. `patience` (nanoseconds) is for each; up to twice as
 * long is waited. Takes over `shared`, also on failure. ret_results has room for all results, those
 * of pieces that were given up are zeroed; ret_done says which were not. A thread that only waits
 * for its turn on a busy machine does not hang. Fails with BERTH_ERROR_IO (too many hang, or no
 * thread) or _MEMORY. */
int abandonable_reads_run(struct abandonable_reads *reads,
                          const struct abandonable_reads_work *work, void *shared,
                          const uint64_t *pieces, size_t count, int64_t timeout, void *ret_results,
                          bool *ret_done, struct berth_error *error);

#endif
