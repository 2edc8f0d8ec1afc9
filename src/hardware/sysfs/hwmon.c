/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware/sysfs/hwmon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/string_list.h"
#include "base/system/clock.h"

/* Drivers number their sensors from 1, without large gaps. */
#define SENSORS_MAX 16

/* Values beyond these limits are wrong: thousandths of a degree, milliwatts, hertz. */
#define TEMPERATURE_MIN  (-273150)
#define TEMPERATURE_MAX  1000000
#define POWER_MAX        INT64_C(1000000000)
#define FREQUENCY_MAX    INT64_C(100000000000)
#define MICRO_IN_A_MILLI 1000

static bool has_name(const struct sysroot *root, const char *directory, const char *const *names)
{
    struct sysroot_value value;

    if (names == NULL)
        return true;
    if (sysroot_read(root, &value, "%s/name", directory) < 0)
        return false;
    for (; *names != NULL; names++)
        if (strcmp(value.text, *names) == 0)
            return true;
    return false;
}

/* Returns the device's hwmon directory; NULL: none. The caller frees it. */
static char *find_directory(const struct sysroot *root, const char *path, const char *const *names)
{
    struct string_list entries = {0};
    char *found = NULL;
    char **entry;

    sysroot_list(root, &entries, "%s/hwmon", path);
    vector_for_each (entry, &entries) {
        if (asprintf(&found, "%s/hwmon/%s", path, *entry) < 0)
            found = NULL;
        if (found == NULL || has_name(root, found, names))
            break;
        free(found);
        found = NULL;
    }
    string_list_finish(&entries);
    return found;
}

/* Returns the number of the sensor with the most preferred label, or of the first sensor unless a
 * label is required; 0: none. `what` is temp, power, freq or energy. `readings` are the files that
 * may have its value. */
static unsigned choose_sensor(const struct sysroot *root, const char *directory, const char *what,
                              const char *const *readings, const char *const *labels,
                              bool needs_label)
{
    const char *const *best = NULL;
    struct sysroot_value value;
    unsigned chosen = 0;

    for (unsigned number = 1; number <= SENSORS_MAX; number++) {
        const char *const *label = labels;

        if (!sysroot_has(root, "%s/%s%u_%s", directory, what, number, readings[0]) &&
            (readings[1] == NULL ||
             !sysroot_has(root, "%s/%s%u_%s", directory, what, number, readings[1])))
            continue;
        if (chosen == 0 && !needs_label)
            chosen = number;
        if (labels == NULL ||
            sysroot_read(root, &value, "%s/%s%u_label", directory, what, number) < 0)
            continue;
        while (*label != NULL && strcmp(value.text, *label) != 0)
            label++;
        if (*label != NULL && (best == NULL || label < best)) {
            best = label;
            chosen = number;
        }
    }
    return chosen;
}

static void read_temperature(const struct sysroot *root, const char *directory,
                             const char *const *labels, struct figure *figure)
{
    static const char *const readings[] = {"input", NULL};
    unsigned sensor = choose_sensor(root, directory, "temp", readings, labels, false);
    int64_t value;

    if (sensor != 0 && sysroot_signed(root, &value, "%s/temp%u_input", directory, sensor) &&
        value >= TEMPERATURE_MIN && value <= TEMPERATURE_MAX)
        *figure = load_figure_sampled(value, clock_read(CLOCK_REALTIME));
}

/* Reads the average power, or the current power if there is no average. */
static void read_power(const struct sysroot *root, const char *directory, const char *const *labels,
                       struct figure *figure)
{
    static const char *const readings[] = {"average", "input", NULL};
    unsigned sensor = choose_sensor(root, directory, "power", readings, labels, false);

    for (const char *const *reading = readings; sensor != 0 && *reading != NULL; reading++) {
        struct optional_number microwatts =
            sysroot_number(root, "%s/power%u_%s", directory, sensor, *reading);

        if (microwatts.known && microwatts.value <= POWER_MAX * MICRO_IN_A_MILLI) {
            *figure = load_figure_sampled((int64_t)(microwatts.value / MICRO_IN_A_MILLI),
                                          clock_read(CLOCK_REALTIME));
            return;
        }
    }
}

static void read_frequency(const struct sysroot *root, const char *directory,
                           const char *const *labels, struct figure *figure)
{
    static const char *const readings[] = {"input", NULL};
    unsigned sensor = choose_sensor(root, directory, "freq", readings, labels, true);
    struct optional_number hertz = {0};

    if (sensor != 0)
        hertz = sysroot_number(root, "%s/freq%u_input", directory, sensor);
    if (hertz.known && hertz.value <= FREQUENCY_MAX)
        *figure = load_figure_sampled((int64_t)hertz.value, clock_read(CLOCK_REALTIME));
}

void hwmon_read(const struct sysroot *root, const char *path, const char *const *names,
                const char *const *labels, struct load *load)
{
    char *directory = find_directory(root, path, names);

    if (directory != NULL) {
        read_temperature(root, directory, labels, &load->temperature);
        read_power(root, directory, labels, &load->power);
        read_frequency(root, directory, labels, &load->frequency);
    }
    free(directory);
}

struct optional_number hwmon_energy(const struct sysroot *root, const char *path,
                                    const char *const *names, const char *const *labels)
{
    static const char *const readings[] = {"input", NULL};
    char *directory = find_directory(root, path, names);
    struct optional_number microjoules = {0};
    unsigned sensor = 0;

    if (directory != NULL)
        sensor = choose_sensor(root, directory, "energy", readings, labels, false);
    if (sensor != 0)
        microjoules = sysroot_number(root, "%s/energy%u_input", directory, sensor);
    free(directory);
    return microjoules;
}

bool hwmon_has(const struct sysroot *root, const char *path, const char *const *names,
               const char *file)
{
    char *directory = find_directory(root, path, names);
    bool has = directory != NULL && sysroot_has(root, "%s/%s", directory, file);

    free(directory);
    return has;
}
