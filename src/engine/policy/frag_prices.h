/* SPDX-License-Identifier: Apache-2.0
 *
 * What parts of a device are worth when all requests for one device that are expected have to be
 * packed.
 */
#ifndef ENGINE_POLICY_FRAG_PRICES_H
#define ENGINE_POLICY_FRAG_PRICES_H

#include <stdint.h>

enum {
    FRAG_PRICES = 200,    /* steps that a device is priced in */
    FRAG_PRICE = 1 << 20, /* of a whole one */
};

/* `by_parts` says how often each size is expected, in thousandths of a device, up to 1000. Fills in
 * the best price that so many steps of a device can fetch; 0 for none. */
void frag_prices_find(const int64_t *by_parts, int64_t *ret_prices);

#endif
