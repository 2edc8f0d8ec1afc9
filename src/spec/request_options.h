/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a request, the same for every verb that takes one and for berth_request_set.
 */
#ifndef SPEC_REQUEST_OPTIONS_H
#define SPEC_REQUEST_OPTIONS_H

#include <berth/error.h>
#include <stdbool.h>

#include "model/request.h"
#include "spec/option.h"

enum rank_mask {
    RANK_MASK_ALL, /* each rank sees its replica's devices */
    RANK_MASK_ONE, /* each rank sees only its own */
};

struct request_options {
    struct request request;
    char *count_model;     /* the MODEL of -n MODEL:N */
    const char *inventory; /* argv's */
    bool uuid;
    bool label;
    enum rank_mask rank_mask;
};

/* Fills in a struct request_options. */
extern const struct option_set request_option_set;

void request_options_init(struct request_options *options);
void request_options_finish(struct request_options *options);

/* Brings together what was said in two places and checks the whole with request_validate. The
 * request borrows everything from the options. Fails with BERTH_ERROR_INVALID; *ret_request is
 * untouched then. */
int request_options_resolve(const struct request_options *options, struct request *ret_request,
                            struct berth_error *error);

/* The same in place, once, after the last option. */
int request_options_complete(struct request_options *options, struct berth_error *error);

#endif
