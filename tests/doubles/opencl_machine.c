/* SPDX-License-Identifier: Apache-2.0 */
#include "doubles/opencl_machine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/count.h"

struct opencl_platform_handle platforms[PLATFORMS];
unsigned platforms_count;
struct fact platforms_said;

static struct {
    char function[32];
    int status;
} faults[CALLS];
static unsigned faults_count;

static void no_sense(const char *line)
{
    fprintf(stderr, "opencl double: %s\n", line);
    abort();
}

static unsigned long long type_of(const char *word)
{
    return strncmp(word, "gpu", 3) == 0   ? OPENCL_DEVICE_TYPE_GPU
           : strncmp(word, "cpu", 3) == 0 ? OPENCL_DEVICE_TYPE_CPU
                                          : OPENCL_DEVICE_TYPE_ACCELERATOR;
}

static void read_fact(const char *text, struct fact *fact)
{
    char *end;

    fact->count = 0;
    while (fact->count < COUNT(fact->numbers)) {
        fact->numbers[fact->count] = strtoull(text, &end, 0);
        if (end == text)
            break;
        fact->count++;
        text = end;
    }
}

static void read_uuid(const char *text, struct opencl_device_handle *device)
{
    for (size_t i = 0; i < OPENCL_UUID_SIZE; i++) {
        char digits[3] = "";
        char *end;

        memcpy(digits, text + 2 * i, 2);
        device->uuid[i] = (uint8_t)strtoul(digits, &end, 16);
        if (end != digits + 2)
            no_sense(text);
    }
    device->has_uuid = true;
}

static void read_device_line(const char *word, const char *rest,
                             struct opencl_device_handle *device)
{
    const struct {
        const char *word;
        struct fact *fact;
    } facts[] = {{"khronos", &device->khronos}, {"nvidia", &device->nvidia},
                 {"amd", &device->amd},         {"memory", &device->memory},
                 {"free", &device->free},       {"units", &device->units},
                 {"splits", &device->splits},   {"size", &device->size}};

    for (size_t i = 0; i < COUNT(facts); i++) {
        if (strcmp(word, facts[i].word) == 0) {
            read_fact(rest, facts[i].fact);
            return;
        }
    }
    if (strcmp(word, "uuid") == 0)
        read_uuid(rest, device);
    else if (strcmp(word, "shown-as") == 0)
        device->shown_as = type_of(rest);
    else if (strcmp(word, "again") == 0)
        device->is_twice = true;
    else if (strcmp(word, "unavailable") == 0)
        device->is_unavailable = true;
    else if (strcmp(word, "unsplittable") == 0)
        device->is_unsplittable = true;
    else
        no_sense(word);
}

static void read_platform_line(const char *word, const char *rest,
                               struct opencl_platform_handle *platform)
{
    if (strcmp(word, "name") == 0)
        snprintf(platform->name, sizeof(platform->name), "%s", rest);
    else if (strcmp(word, "vendor") == 0)
        snprintf(platform->vendor, sizeof(platform->vendor), "%s", rest);
    else if (strcmp(word, "unterminated") == 0)
        platform->is_unterminated = true;
    else if (strcmp(word, "fails") == 0)
        read_fact(rest, &platform->fails);
    else if (strcmp(word, "devices") == 0)
        read_fact(rest, &platform->devices_said);
    else if (strcmp(word, "device") == 0 && platform->count < DEVICES)
        platform->devices[platform->count++] = (struct opencl_device_handle){.type = type_of(rest)};
    else if (platform->count > 0)
        read_device_line(word, rest, &platform->devices[platform->count - 1]);
    else
        no_sense(word);
}

/* "FUNCTION STATUS" */
static void read_call(const char *text)
{
    size_t length = strcspn(text, " ");

    if (faults_count == CALLS || text[length] == '\0' || length >= sizeof(faults[0].function))
        no_sense(text);
    memcpy(faults[faults_count].function, text, length);
    faults[faults_count].function[length] = '\0';
    faults[faults_count].status = (int)strtol(text + length, NULL, 10);
    faults_count++;
}

static void read_line(char *line)
{
    char *word = line + strspn(line, " ");
    char *rest = word + strcspn(word, " \n");

    line[strcspn(line, "\n")] = '\0';
    if (*rest != '\0')
        *rest++ = '\0';
    if (*word == '\0' || *word == '#')
        return;
    if (strcmp(word, "call") == 0)
        read_call(rest);
    else if (strcmp(word, "platforms") == 0)
        read_fact(rest, &platforms_said);
    else if (strcmp(word, "platform") == 0 && platforms_count < PLATFORMS)
        platforms_count++;
    else if (platforms_count > 0)
        read_platform_line(word, rest, &platforms[platforms_count - 1]);
    else
        no_sense(word);
}

static void read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[256];

    memset(platforms, 0, sizeof(platforms));
    platforms_said = (struct fact){0};
    platforms_count = 0;
    faults_count = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        read_line(line);
    if (file != NULL)
        fclose(file);
}

static void read_if_changed(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static struct stat before;
    const char *path = getenv("OPENCL_DOUBLE");
    struct stat now;

    if (path == NULL || stat(path, &now) < 0)
        no_sense("expected OPENCL_DOUBLE to name a file");
    pthread_mutex_lock(&mutex);
    if (now.st_ino != before.st_ino || now.st_size != before.st_size ||
        now.st_mtim.tv_sec != before.st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != before.st_mtim.tv_nsec)
        read_file(path);
    before = now;
    pthread_mutex_unlock(&mutex);
}

bool machine_tells(const char *function, int32_t *ret_status)
{
    read_if_changed();
    for (unsigned i = 0; i < faults_count; i++) {
        if (strcmp(faults[i].function, function) == 0) {
            *ret_status = faults[i].status;
            return true;
        }
    }
    return false;
}
