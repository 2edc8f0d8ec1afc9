/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count.h"
#include "spec/cdi_reader.h"
#include "support/assert_error.h"
#include "support/exact_copy.h"
#include "support/failing_allocator.h"

/* A shortened file of nvidia-ctk. */
static const char nvidia[] = "---\n"
                             "cdiVersion: 0.5.0\n"
                             "containerEdits:\n"
                             "  deviceNodes:\n"
                             "  - path: /dev/nvidiactl\n"
                             "  env:\n"
                             "  - NVIDIA_VISIBLE_DEVICES=void\n"
                             "  hooks:\n"
                             "  - args: [nvidia-ctk, hook, update-ldcache]\n"
                             "    hookName: createContainer\n"
                             "    path: /usr/bin/nvidia-ctk\n"
                             "  mounts:\n"
                             "  - containerPath: /usr/bin/nvidia-smi\n"
                             "    hostPath: /usr/bin/nvidia-smi\n"
                             "    options: [ro, nosuid]\n"
                             "devices:\n"
                             "- containerEdits:\n"
                             "    deviceNodes:\n"
                             "    - path: /dev/nvidia0\n"
                             "    - hostPath: /run/nvidia/driver/dev/dri/card1\n"
                             "      path: /dev/dri/card0\n"
                             "  name: \"0\"\n"
                             "- containerEdits:\n"
                             "    env: [A=b]\n"
                             "  name: all\n"
                             "kind: nvidia.com/gpu\n";

static void describe(const struct cdi_registry *entries, struct text *out)
{
    const struct cdi_entry *entry;
    char *const *node;

    vector_for_each (entry, entries) {
        text_append_format(out, "%s", entry->name);
        vector_for_each (node, &entry->nodes)
            text_append_format(out, " %s", *node);
        text_append_char(out, '\n');
    }
}

static int parse(const char *text, struct cdi_registry *ret_entries, struct berth_error *error)
{
    size_t length = strlen(text);
    char *exact = exact_copy(text, length);
    int code = cdi_reader_parse("f", exact, length, ret_entries, error);

    free(exact);
    return code;
}

static void check(const char *text, const char *wanted)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct cdi_registry entries = {0};
    struct text found = {0};

    if (parse(text, &entries, &error) < 0)
        fail_msg("%s", error.message);
    describe(&entries, &found);
    assert_string_equal(text_string(&found), wanted);
    text_finish(&found);
    cdi_registry_finish(&entries);
}

static void what_vendors_write(void **state)
{
    (void)state;
    check(nvidia, "nvidia.com/gpu=0 /dev/nvidia0 /dev/dri/card1 /dev/nvidiactl\n"
                  "nvidia.com/gpu=all /dev/nvidiactl\n");
    check("{\"cdiVersion\":\"0.8.0\",\"kind\":\"amd.com/gpu\",\"devices\":[{\"name\":\"0\","
          "\"annotations\":{\"a\":\"b\"},\"containerEdits\":{\"deviceNodes\":[{\"path\":"
          "\"/dev/kfd\"},{\"path\":\"/dev/dri/renderD128\",\"major\":226,\"minor\":128}]}}]}",
          "amd.com/gpu=0 /dev/kfd /dev/dri/renderD128\n");
    /* Unquoted numbers are names, null is nothing, and no version is too new. */
    check("cdiVersion: 9.9\nkind: a/b\ncontainerEdits: null\ndevices:\n"
          "- {name: 7, containerEdits: {deviceNodes: ~, mounts: []}}\n",
          "a/b=7\n");
}

static void hosts_files_count(void **state)
{
    static const char form[] =
        "cdiVersion: 0.5.0\nkind: a.b/c_d\ndevices: [{name: x:y.z, "
        "containerEdits: {deviceNodes: [{path: /dev/nvidia0, hostPath: %s}]}}]";
    static const char *const paths[][2] = {
        {"/dev/nvidia3", "/dev/nvidia3"},
        {"/run/nvidia/driver/dev/nvidia3", "/dev/nvidia3"},
        {"/dev/dev/nvidia3", "/dev/nvidia3"},
        {"/devices/x", "/devices/x"},
        {"~", "/dev/nvidia0"},
    };
    char text[256];
    char wanted[64];

    (void)state;
    for (size_t i = 0; i < COUNT(paths); i++) {
        snprintf(text, sizeof(text), form, paths[i][0]);
        snprintf(wanted, sizeof(wanted), "a.b/c_d=x:y.z %s\n", paths[i][1]);
        check(text, wanted);
    }
}

static void check_refused(const char *text, int code, const char *message)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct cdi_registry entries = {.count = 4711};

    assert_fails(parse(text, &entries, &error), code, &error, message);
    assert_int_equal(entries.count, 4711);
    assert_int_equal(parse(text, &entries, NULL), code);
}

#define HEAD "cdiVersion: 0.5.0\nkind: a.com/gpu\n"

static void what_is_no_cdi_file(void **state)
{
    static const char *const rows[][2] = {
        {"", "f:1:1: expected a CDI file with 'cdiVersion', 'kind' and 'devices', got nothing"},
        {"- 1", "f:1:1: expected a CDI file with 'cdiVersion', 'kind' and 'devices', got a list "
                "of 1"},
        {"kind: a/b", "f:1:1: cdiVersion: expected a text, got nothing"},
        {"cdiVersion: [0]", "f:1:13: cdiVersion: expected a text, got a list of 1"},
        {"cdiVersion: 1\nkind: gpu", "f:2:7: kind: expected one such as nvidia.com/gpu, got 'gpu'"},
        {"cdiVersion: 1\nkind: 1a/gpu",
         "f:2:7: kind: expected one such as nvidia.com/gpu, got '1a/gpu'"},
        {"cdiVersion: 1\nkind: a/b/c",
         "f:2:7: kind: expected one such as nvidia.com/gpu, got 'a/b/c'"},
        {"cdiVersion: 1\nkind: a/b.c",
         "f:2:7: kind: expected one such as nvidia.com/gpu, got 'a/b.c'"},
        {"cdiVersion: 1\nkind: a-/b",
         "f:2:7: kind: expected one such as nvidia.com/gpu, got 'a-/b'"},
        {"cdiVersion: 1\ncdiVersion: 2", "f:2:1: expected 'cdiVersion' once, got it twice"},
        {HEAD, "f:1:1: devices: expected a list, got nothing"},
        {HEAD "devices: []", "f:1:1: devices: expected a list, got nothing"},
        {HEAD "devices: {}", "f:3:10: devices: expected a list, got a mapping"},
        {HEAD "devices: [x]", "f:3:11: devices: expected a mapping for each, got 'x'"},
        {HEAD "devices: [{}]", "f:3:11: name: expected a text, got nothing"},
        {HEAD "devices: [{name: \"a b\"}]", "f:3:18: name: expected a CDI name, got 'a b'"},
        {HEAD "devices: [{name: -a}]", "f:3:18: name: expected a CDI name, got '-a'"},
        {HEAD "devices: [{name: \"a\\0\"}]",
         "f:3:18: name: expected a text without zero bytes, got one"},
        {HEAD "devices: [{name: a}]", "f:3:11: containerEdits: expected a mapping, got nothing"},
        {HEAD "devices: [{name: a, containerEdits: {}}]",
         "f:3:37: containerEdits: expected a mapping, got nothing"},
        {HEAD "devices: [{name: a, containerEdits: {deviceNodes: x}}]",
         "f:3:51: deviceNodes: expected a list, got 'x'"},
        {HEAD "devices: [{name: a, containerEdits: {deviceNodes: [x]}}]",
         "f:3:52: deviceNodes: expected a mapping for each, got 'x'"},
        {HEAD "devices: [{name: a, containerEdits: {deviceNodes: [{}]}}]",
         "f:3:52: path: expected a text, got nothing"},
        {HEAD "devices: [{name: a, containerEdits: {deviceNodes: [{path: dev}]}}]",
         "f:3:59: expected an absolute path, got 'dev'"},
        {HEAD "devices: [{name: a, containerEdits: {deviceNodes: [{path: /a, hostPath: []}]}}]",
         "f:3:73: hostPath: expected a text, got a list of 0"},
        {HEAD "devices: [{name: a, containerEdits: {env: []}}, {name: a, containerEdits: {env: "
              "[]}}]",
         "f:3:56: name: expected 'a' once, got it twice"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        check_refused(rows[i][0], BERTH_ERROR_SYNTAX, rows[i][1]);
}

static void too_much(void **state)
{
    struct text text = {0};

    (void)state;
    text_append(&text, HEAD "devices: [{name: ");
    text_append_repeated(&text, 'a', CDI_TEXT_MAX + 1);
    text_append(&text, "}]");
    check_refused(text_string(&text), BERTH_ERROR_LIMIT,
                  "f:3:18: name: expected a text of at most 4095 bytes, got 4096");
    text_clear(&text);
    text_append(&text, HEAD "devices:\n");
    for (int i = 0; i <= CDI_ENTRIES_MAX; i++)
        text_append(&text, "- a\n");
    check_refused(text_string(&text), BERTH_ERROR_LIMIT,
                  "f:4:1: devices: expected at most 4096, got 4097");
    /* A small file: each entry gets a copy of the shared device nodes, which is too much. */
    text_clear(&text);
    text_append(&text, HEAD "containerEdits: {deviceNodes: [");
    for (int i = 0; i < 8; i++) {
        text_append(&text, "{path: /");
        text_append_repeated(&text, 'a', CDI_TEXT_MAX - 1);
        text_append(&text, "},");
    }
    text_append(&text, "]}\ndevices:\n");
    for (int i = 0; i < CDI_ENTRIES_MAX; i++)
        text_append_format(&text, "- {name: %d, containerEdits: {env: []}}\n", i);
    check_refused(text_string(&text), BERTH_ERROR_LIMIT,
                  "f: expected at most 16777216 bytes of device files, got more");
    text_finish(&text);
}

static int attempt(void *context)
{
    struct cdi_registry entries = {0};
    int code = cdi_reader_parse("f", context, strlen(context), &entries, NULL);

    cdi_registry_finish(&entries);
    return code;
}

static void no_memory(void **state)
{
    (void)state;
    assert_true(failing_allocator_try_all(attempt, (void *)nvidia) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_vendors_write),  cmocka_unit_test(hosts_files_count),
        cmocka_unit_test(what_is_no_cdi_file), cmocka_unit_test(too_much),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests_name("cdi_parse", tests, NULL, NULL);
}
