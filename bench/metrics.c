/* SPDX-License-Identifier: Apache-2.0
 *
 * The cost of writing a pool for Prometheus. `metrics scrape DEVICES` writes six figures per
 * device, of which utilization, memory, temperature and power differ each time; `metrics copy
 * DEVICES` copies the same bytes. Both print the microseconds of the quickest run of many. `metrics
 * bytes DEVICES` prints the number of bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "web/metrics.h"

enum { TIMES = 40 };

static void make_device(struct slot_info *slot, uint32_t index)
{
    struct device *device = calloc(1, sizeof(*device));
    char uuid[48];

    if (device == NULL)
        give_up("out of memory");
    snprintf(uuid, sizeof(uuid), "GPU-%08x-6c2f-4b7e-9d51-%012x", index * 2654435761U, index);
    device->id = (struct device_id){VENDOR_NVIDIA, index, DEVICE_NO_MIG};
    device->name = strdup("NVIDIA H100 80GB HBM3");
    device->uuid = strdup(uuid);
    device->memory_total.known = true;
    device->memory_total.value = UINT64_C(85520809984);
    slot->device = device;
}

static void make_view(struct pool_view *view, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct slot_info *slot = vector_append(&view->snapshot.slots);
        struct pool_use *use = i % 2 == 0 ? vector_append(&view->uses) : NULL;

        if (slot == NULL || (i % 2 == 0 && use == NULL))
            give_up("out of memory");
        make_device(slot, i);
        if (use != NULL)
            use->slot = i;
    }
}

/* Changes every figure. */
static void sample(struct pool_view *view, uint32_t round)
{
    struct slot_info *slot;
    uint32_t seed = round + 1;

    vector_for_each (slot, &view->snapshot.slots) {
        struct load *load = &slot->device->load;

        seed = seed * 1664525U + 1013904223U;
        load->utilization = load_figure_sampled(seed >> 22, 1);
        load->memory_free = load_figure_sampled((int64_t)seed * 16, 1);
        load->temperature = load_figure_sampled(30000 + (seed >> 18), 1);
        load->power = load_figure_sampled(50000 + (seed >> 13), 1);
    }
}

/* Copies into memory that an earlier round has written, as a scrape does. */
static double copy(const struct text *from)
{
    char *to = malloc(from->length);
    int64_t best = INT64_MAX;

    if (to == NULL)
        give_up("out of memory");
    for (int i = 0; i < TIMES; i++) {
        int64_t begun = now();
        int64_t took;

        memcpy(to, from->bytes, from->length);
        use_value(to);
        took = now() - begun;
        best = took < best ? took : best;
    }
    free(to);
    return (double)best / 1e3;
}

static double scrape(struct metrics *metrics, struct pool_view *view, struct text *out)
{
    int64_t best = INT64_MAX;

    for (uint32_t i = 0; i < TIMES; i++) {
        int64_t begun;
        int64_t took;

        sample(view, i);
        text_clear(out);
        begun = now();
        metrics_write(metrics, view, NULL, out);
        took = now() - begun;
        use_value(out->bytes);
        best = took < best ? took : best;
    }
    return (double)best / 1e3;
}

int main(int argc, char **argv)
{
    static struct pool_view view;
    static struct metrics metrics;
    static struct text out;
    double time;

    if (argc != 3)
        give_up("usage: metrics scrape|copy|bytes DEVICES");
    make_view(&view, (uint32_t)strtoul(argv[2], NULL, 10));
    sample(&view, 0);
    metrics_write(&metrics, &view, NULL, &out);
    if (text_failed(&out))
        give_up("out of memory");
    if (strcmp(argv[1], "scrape") == 0)
        time = scrape(&metrics, &view, &out);
    else if (strcmp(argv[1], "copy") == 0)
        time = copy(&out);
    else
        time = (double)out.length;
    printf("%f\n", time);
    return 0;
}
