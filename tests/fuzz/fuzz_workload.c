/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses any bytes as a spec file. An accepted one is a valid request and can be printed. A refused
 * one gets a message that names the file and the position.
 */
#include <stdint.h>
#include <string.h>

#include "base/text/utf8.h"
#include "spec/workload.h"
#include "spec/workload_types.h"
#include "support/require_output.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char file_name[] = "fuzz.yaml";

/* Skips a number that is not 0 and the character behind it. Returns NULL for any other text. */
static const char *skip_number(const char *text, char behind)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && text[0] != '0' && text[digits] == behind ? text + digits + 1 : NULL;
}

/* Requires "fuzz.yaml:LINE:COLUMN: something". For UTF-16, only the position in bytes is known. */
static void require_place(const char *message)
{
    static const char utf_16[] = " byte ";
    const char *at = message + strlen(file_name);

    require(strncmp(message, file_name, strlen(file_name)) == 0 && *at++ == ':');
    if (strncmp(at, utf_16, strlen(utf_16)) == 0)
        return;
    at = skip_number(at, ':');
    require(at != NULL);
    at = skip_number(at, ':');
    require(at != NULL && at[0] == ' ' && at[1] != '\0');
}

static void walk_text(const char *text, size_t longest)
{
    if (text != NULL)
        require(*text != '\0' && strlen(text) <= longest && utf8_is_valid(text, strlen(text)));
}

static void walk_request(const struct request *request)
{
    struct text words = {0};

    require(request_validate(request, NULL) == 0);
    require(request->scheduling != SCHEDULING_UNSAID || request->ranks);
    require(!request->nonblock && !request->cpus.known && !request->host_memory.known);
    require(request->vendor_rule != VENDOR_RULE_ONE);
    walk_text(request->name, REQUEST_TEXT_MAX);
    walk_text(request->model, REQUEST_TEXT_MAX);
    walk_text(request->policy, REQUEST_TEXT_MAX);
    walk_text(request->affinity, REQUEST_TEXT_MAX);
    walk_text(request->mps_pipe_dir, REQUEST_DIRECTORY_MAX);
    walk_text(request->mps_log_dir, REQUEST_DIRECTORY_MAX);
    request_describe(request, &words);
    require_lines(&words);
    text_finish(&words);
}

static void walk_options(const struct request_options *options)
{
    char **string;

    require(options->master_port <= UINT16_MAX);
    walk_text(options->interface, INTERFACE_MAX);
    require(options->command.count <= WORKLOAD_ARGUMENTS_MAX);
    require(options->command.count == 0 || options->command.items[0][0] != '\0');
    vector_for_each (string, &options->command)
        require(strlen(*string) <= WORKLOAD_ARGUMENT_MAX &&
                utf8_is_valid(*string, strlen(*string)));
    vector_for_each (string, &options->notes) {
        require_inert(*string, strlen(*string));
        require_place(*string);
        require(strstr(*string, ": note: ") != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct berth_error error = BERTH_ERROR_INIT;
    struct request_options options;
    struct request request;
    int code = workload_parse(file_name, (const char *)data, size, &options, &error);

    if (code < 0) {
        require_message(&error, code);
        require_place(error.message);
        return 0;
    }
    require(error.message[0] == '\0');
    require(request_options_resolve(&options, &request, &error) == 0);
    walk_request(&request);
    walk_options(&options);
    request_options_finish(&options);
    return 0;
}
