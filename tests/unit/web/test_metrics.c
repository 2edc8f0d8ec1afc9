/* SPDX-License-Identifier: Apache-2.0
 *
 * Metrics for Prometheus: the samples, and the format of numbers and labels.
 */
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "support/failing_allocator.h"
#include "support/views/pool_views.h"
#include "web/metrics.h"

static void check_escaped(const char *value, const char *wanted)
{
    struct text text = {0};

    metrics_append_escaped(value, &text);
    assert_string_equal(text_string(&text), wanted);
    text_finish(&text);
}

static void labels_are_escaped(void **state)
{
    (void)state;
    check_escaped("", "");
    check_escaped("NVIDIA A100", "NVIDIA A100");
    check_escaped("a\\b\"c\nd", "a\\\\b\\\"c\\nd");
    check_escaped("\\n", "\\\\n");
    check_escaped("\xc3\xa9{}=,\t", "\xc3\xa9{}=,\t");
    check_escaped("a\xff\xc3", "a\xef\xbf\xbd\xef\xbf\xbd");
}

/* Returns whether the text has this whole line. */
static bool has(const struct text *text, const char *line)
{
    const char *found = text_string(text);
    size_t length = strlen(line);

    while ((found = strstr(found, line)) != NULL) {
        if ((found == text->bytes || found[-1] == '\n') && found[length] == '\n')
            return true;
        found++;
    }
    return false;
}

static size_t count_lines(const struct text *text, const char *beginning)
{
    const char *line = text_string(text);
    size_t count = 0;

    while (line != NULL && *line != '\0') {
        count += strncmp(line, beginning, strlen(beginning)) == 0;
        line = strchr(line, '\n');
        line = line == NULL ? NULL : line + 1;
    }
    return count;
}

#define LABELS(index) \
    "{gpu=\"nvidia" index "\",UUID=\"\",vendor=\"nvidia\",model=\"NVIDIA A100-SXM4-80GB\"} "

static void index_view(struct pool_view *view)
{
    struct berth_error error = BERTH_ERROR_INIT;

    assert_int_equal(pool_view_index(view, &error), 0);
}

static void figures(void **state)
{
    struct pool_view view = view_of(3);
    struct load *load = &view.snapshot.slots.items[0].device->load;
    struct metrics metrics = {0};
    struct text text = {0};

    (void)state;
    load->utilization = load_figure_sampled(125, 1);
    load->memory_free = load_figure_sampled(INT64_C(20) << 30, 1);
    load->temperature = load_figure_sampled(-5050, 1);
    load->power = load_figure_sampled(250000, 1);
    view.snapshot.slots.items[2].device->load.utilization = load_figure_sampled(0, 1);
    view_lease(&view, 12, 1, 2);
    view_claim(&view, 13, "1 device", "busy");
    index_view(&view);
    metrics_write(&metrics, &view, NULL, &text);
    assert_true(has(&text, "berth_devices 3"));
    assert_true(has(&text, "berth_device_leased" LABELS("0") "0"));
    assert_true(has(&text, "berth_device_leased" LABELS("1") "1"));
    assert_true(has(&text, "berth_device_utilization_ratio" LABELS("0") "0.125"));
    assert_true(has(&text, "berth_device_utilization_ratio" LABELS("2") "0"));
    assert_int_equal(count_lines(&text, "berth_device_utilization_ratio"), 2);
    assert_true(has(&text, "berth_device_memory_used_bytes" LABELS("0") "64424509440"));
    assert_int_equal(count_lines(&text, "berth_device_memory_used_bytes"), 1);
    assert_int_equal(count_lines(&text, "berth_device_memory_total_bytes"), 3);
    assert_true(has(&text, "berth_device_temperature_celsius" LABELS("0") "-5.05"));
    assert_true(has(&text, "berth_device_power_watts" LABELS("0") "250"));
    assert_true(has(&text, "berth_leases 1"));
    assert_true(has(&text, "berth_claims_pending 1"));
    assert_true(has(&text, "berth_build_info{version=\"" BERTH_VERSION "\"} 1"));
    assert_int_equal(count_lines(&text, "berth_claims_total"), 0);
    text_finish(&text);
    metrics_finish(&metrics);
    pool_view_finish(&view);
}

/* Old values are left out. */
static void old_and_impossible_figures_are_absent(void **state)
{
    struct pool_view view = view_of(2);
    struct metrics metrics = {0};
    struct text text = {0};

    (void)state;
    view.snapshot.slots.items[0].device->load.utilization = load_figure_sampled(500, 1);
    view.snapshot.slots.items[0].device->old = true;
    view.snapshot.slots.items[1].device->load.memory_free =
        load_figure_sampled(INT64_C(81) << 30, 1);
    index_view(&view);
    metrics_write(&metrics, &view, NULL, &text);
    assert_int_equal(count_lines(&text, "berth_device_utilization_ratio"), 0);
    assert_int_equal(count_lines(&text, "berth_device_memory_used_bytes"), 0);
    assert_int_equal(count_lines(&text, "berth_device_leased"), 2);
    text_finish(&text);
    metrics_finish(&metrics);
    pool_view_finish(&view);
}

static void counters_and_histograms(void **state)
{
    struct duration_histogram waited = {.counts = {1, 0, 2}, .sum = UINT64_C(12345678901)};
    const struct pool_tally tally = {.granted = 3, .busy = UINT64_MAX, .waited = &waited};
    struct pool_view view = view_of(0);
    struct metrics metrics = {0};
    struct text text = {0};
    char line[128];

    (void)state;
    waited.counts[HISTOGRAM_BUCKETS - 1] = 4;
    metrics_write(&metrics, &view, &tally, &text);
    assert_true(has(&text, "berth_claims_total{result=\"granted\"} 3"));
    assert_true(has(&text, "berth_claims_total{result=\"busy\"} 18446744073709551615"));
    assert_int_equal(count_lines(&text, "berth_claims_total{"), 6);
    snprintf(line, sizeof(line), "berth_claim_wait_seconds_bucket{le=\"%s\"} 1",
             quantity_format_decimal(histogram_bounds[0], 9).text);
    assert_true(has(&text, line));
    snprintf(line, sizeof(line), "berth_claim_wait_seconds_bucket{le=\"%s\"} 3",
             quantity_format_decimal(histogram_bounds[2], 9).text);
    assert_true(has(&text, line));
    assert_true(has(&text, "berth_claim_wait_seconds_bucket{le=\"+Inf\"} 7"));
    assert_true(has(&text, "berth_claim_wait_seconds_sum 12.345678901"));
    assert_true(has(&text, "berth_claim_wait_seconds_count 7"));
    assert_true(has(&text, "berth_lease_seconds_count 0"));
    assert_int_equal(count_lines(&text, "berth_lease_seconds_bucket"), HISTOGRAM_BUCKETS);
    assert_int_equal(count_lines(&text, "# HELP "), count_lines(&text, "# TYPE "));
    text_finish(&text);
    metrics_finish(&metrics);
    pool_view_finish(&view);
}

/* Labels are cached, and follow changes of the device. */
static void devices_that_change(void **state)
{
    struct pool_view view = view_of(2);
    struct device *device = view.snapshot.slots.items[1].device;
    struct pool_view fewer = view_of(1);
    struct metrics metrics = {0};
    struct text text = {0};
    const char *kept;

    (void)state;
    metrics_write(&metrics, &view, NULL, &text);
    kept = metrics.labels.items[0].text;
    device->uuid = view_text("GPU-\"1\"");
    free(device->name);
    device->name = NULL;
    text_clear(&text);
    metrics_write(&metrics, &view, NULL, &text);
    assert_ptr_equal(metrics.labels.items[0].text, kept);
    assert_true(has(&text, "berth_device_leased{gpu=\"nvidia1\",UUID=\"GPU-\\\"1\\\"\",vendor="
                           "\"nvidia\",model=\"\"} 0"));
    text_clear(&text);
    metrics_write(&metrics, &fewer, NULL, &text);
    assert_int_equal(count_lines(&text, "berth_device_leased"), 1);
    text_finish(&text);
    metrics_finish(&metrics);
    pool_view_finish(&view);
    pool_view_finish(&fewer);
}

static int attempt(void *context)
{
    struct metrics metrics = {0};
    struct text text = {0};
    int code;

    metrics_write(&metrics, context, NULL, &text);
    code = text_failed(&text) ? BERTH_ERROR_MEMORY : 0;
    text_finish(&text);
    metrics_finish(&metrics);
    return code;
}

static void no_memory(void **state)
{
    struct pool_view view = view_of(2);

    (void)state;
    view.snapshot.slots.items[0].device->uuid = view_text("GPU-0");
    assert_true(failing_allocator_try_all(attempt, &view) > 4);
    pool_view_finish(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_are_escaped),
        cmocka_unit_test(figures),
        cmocka_unit_test(old_and_impossible_figures_are_absent),
        cmocka_unit_test(counters_and_histograms),
        cmocka_unit_test(devices_that_change),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests_name("web metrics", tests, NULL, NULL);
}
