/* SPDX-License-Identifier: Apache-2.0 */
#include "model/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/count.h"
#include "base/error.h"
#include "base/text/quantity.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"

const struct choice sharing_names[] = {
    {"exclusive", SHARING_EXCLUSIVE},
    {"mps", SHARING_MPS},
    {"time-slice", SHARING_TIME_SLICE},
    {0},
};

const struct choice scheduling_names[] = {
    {"best-effort", SCHEDULING_BEST_EFFORT},
    {"gang", SCHEDULING_GANG},
    {"spread", SCHEDULING_SPREAD},
    {0},
};

const struct choice priority_names[] = {
    {"low", PRIORITY_LOW},
    {"normal", PRIORITY_NORMAL},
    {"high", PRIORITY_HIGH},
    {0},
};

void request_init(struct request *request)
{
    *request = (struct request){.gpus = {.min = 1, .max = 1}, .replicas = 1};
}

void request_finish(struct request *request)
{
    vector_finish(&request->wanted);
    vector_finish(&request->avoided);
    free(request->model);
    free(request->policy);
    free(request->affinity);
    free(request->name);
    free(request->mps_pipe_dir);
    free(request->mps_log_dir);
    request_init(request);
}

static int copy_text(char **ret_copy, const char *text)
{
    *ret_copy = text == NULL ? NULL : strdup(text);
    return text != NULL && *ret_copy == NULL ? BERTH_ERROR_MEMORY : 0;
}

int request_copy(struct request *ret_request, const struct request *from)
{
    struct request copy = *from;
    int code;

    copy.wanted = copy.avoided = (struct device_id_list){0};
    copy.model = copy.policy = copy.affinity = copy.name = NULL;
    copy.mps_pipe_dir = copy.mps_log_dir = NULL;
    code = device_id_list_copy(&copy.wanted, &from->wanted);
    if (code == 0)
        code = device_id_list_copy(&copy.avoided, &from->avoided);
    if (code == 0)
        code = copy_text(&copy.model, from->model);
    if (code == 0)
        code = copy_text(&copy.policy, from->policy);
    if (code == 0)
        code = copy_text(&copy.affinity, from->affinity);
    if (code == 0)
        code = copy_text(&copy.name, from->name);
    if (code == 0)
        code = copy_text(&copy.mps_pipe_dir, from->mps_pipe_dir);
    if (code == 0)
        code = copy_text(&copy.mps_log_dir, from->mps_log_dir);
    if (code == 0)
        *ret_request = copy;
    else
        request_finish(&copy);
    return code;
}

static bool same_capability(struct capability one, struct capability other)
{
    return one.known == other.known &&
           (!one.known || (one.major == other.major && one.minor == other.minor));
}

static bool same_devices(const struct request *one, const struct request *other)
{
    return one->gpus.min == other->gpus.min && one->gpus.max == other->gpus.max &&
           one->gpus.all == other->gpus.all && one->replicas == other->replicas &&
           device_id_list_equals(&one->wanted, &other->wanted) &&
           device_id_list_equals(&one->avoided, &other->avoided) &&
           one->vendor_rule == other->vendor_rule && one->vendor == other->vendor &&
           text_equals(one->model, other->model) &&
           optional_equals(one->min_free, other->min_free) &&
           optional_equals(one->min_memory, other->min_memory) &&
           same_capability(one->min_cap, other->min_cap);
}

bool request_equals(const struct request *one, const struct request *other)
{
    return same_devices(one, other) && one->sharing == other->sharing &&
           optional_equals(one->share, other->share) &&
           optional_equals(one->memory, other->memory) &&
           text_equals(one->mps_pipe_dir, other->mps_pipe_dir) &&
           text_equals(one->mps_log_dir, other->mps_log_dir) &&
           optional_equals(one->cpus, other->cpus) &&
           optional_equals(one->host_memory, other->host_memory) &&
           one->scheduling == other->scheduling && one->priority == other->priority &&
           text_equals(one->policy, other->policy) && text_equals(one->affinity, other->affinity) &&
           one->opportunistic == other->opportunistic && one->ranks == other->ranks &&
           one->or_cpu == other->or_cpu && one->nonblock == other->nonblock &&
           optional_equals(one->wait, other->wait) && optional_equals(one->time, other->time) &&
           text_equals(one->name, other->name);
}

/* Copies one number of a range, up to `end`, so that its error quotes only that number. */
static int parse_bound(const char *start, const char *end, uint32_t *ret_bound,
                       struct berth_error *error)
{
    char digits[24];
    uint64_t number;
    int code;

    if ((size_t)(end - start) >= sizeof(digits))
        return error_set(error, BERTH_ERROR_RANGE, "expected at most %d devices, got %s",
                         REQUEST_COUNT_MAX, quote_bytes(start, (size_t)(end - start)).text);
    memcpy(digits, start, (size_t)(end - start));
    digits[end - start] = '\0';
    code = quantity_parse_number(digits, 1, REQUEST_COUNT_MAX, &number, error);
    if (code < 0)
        return code;
    *ret_bound = (uint32_t)number;
    return 0;
}

int request_parse_device_count(const char *string, struct device_count *ret_count,
                               struct berth_error *error)
{
    const char *end = string + strlen(string);
    const char *dash = strchr(string, '-');
    struct device_count count = {0};
    int code;

    if (strcmp(string, "all") == 0) {
        *ret_count = (struct device_count){.all = true};
        return 0;
    }
    if (strspn(string, "0123456789-") != strlen(string) || *string == '\0' || dash == string ||
        (dash != NULL && (dash[1] == '\0' || strchr(dash + 1, '-') != NULL)))
        return error_set(error, BERTH_ERROR_SYNTAX,
                         "expected a number of devices, a range such as 2-4, or all, got %s",
                         quote(string).text);
    code = parse_bound(string, dash == NULL ? end : dash, &count.min, error);
    count.max = count.min;
    if (code == 0 && dash != NULL)
        code = parse_bound(dash + 1, end, &count.max, error);
    if (code == 0 && count.min > count.max)
        code = error_set(error, BERTH_ERROR_RANGE,
                         "expected a range from the smaller number to the larger, got %s",
                         quote(string).text);
    if (code == 0)
        *ret_count = count;
    return code;
}

/* Converts to the signed type that the formatting functions take. */
static int64_t clamp_to_signed(uint64_t value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

#define OPTION_NAMES                                                                      \
    .gpus = "gpus", .ranks = "ranks", .min_free = "min-free", .min_memory = "min-memory", \
    .mps_pipe_dir = "mps-pipe-dir", .mps_log_dir = "mps-log-dir"

const struct request_names request_option_names = {.dashes = "", OPTION_NAMES};
const struct request_names request_command_names = {.dashes = "--", OPTION_NAMES};

/* A request that is being validated. */
struct validation {
    const struct request *request;
    const struct request_names *names;
    const char *field; /* the name of the field at fault; set on failure */
    struct berth_error *error;
};

/* Refuses the request with the message "FIELD: sentence". */
__attribute__((format(printf, 3, 4))) static int
refuse_field(struct validation *validation, const char *field, const char *format, ...)
{
    char sentence[sizeof(validation->error->message)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(sentence, sizeof(sentence), format, arguments);
    va_end(arguments);
    validation->field = field;
    return error_set(validation->error, BERTH_ERROR_INVALID, "%s%s: %s", validation->names->dashes,
                     field, sentence);
}

static int validate_counts(struct validation *validation)
{
    const struct request *request = validation->request;
    const struct device_count *gpus = &request->gpus;

    if (request->replicas < 1 || request->replicas > REQUEST_COUNT_MAX)
        return refuse_field(validation, "replicas", "expected 1 to %d, got %u", REQUEST_COUNT_MAX,
                            request->replicas);
    if (gpus->all)
        return request->replicas == 1
                   ? 0
                   : refuse_field(validation, "replicas", "expected 1 when %s%s is all, got %u",
                                  validation->names->dashes, validation->names->gpus,
                                  request->replicas);
    if (gpus->max == 0 && gpus->min == 0 && (request->cpus.known || request->host_memory.known))
        return 0; /* work on a host, without devices */
    if (gpus->min < 1 || gpus->max > REQUEST_COUNT_MAX)
        return refuse_field(validation, validation->names->gpus,
                            "expected 1 to %d devices, got %u-%u", REQUEST_COUNT_MAX, gpus->min,
                            gpus->max);
    if (gpus->min > gpus->max)
        return refuse_field(validation, validation->names->gpus,
                            "expected a range from the smaller number to the larger, got %u-%u",
                            gpus->min, gpus->max);
    return 0;
}

static int validate_mps(struct validation *validation)
{
    const char *dashes = validation->names->dashes;
    const struct request *request = validation->request;

    if (request->sharing != SHARING_MPS)
        return 0;
    if (request->vendor_rule == VENDOR_RULE_EXACT && request->vendor != VENDOR_NVIDIA)
        return refuse_field(validation, "sharing",
                            "mps works on nvidia devices only, got another vendor");
    if (!request->ranks && (request->gpus.all || request->gpus.max > 1))
        return refuse_field(validation, "sharing",
                            "mps gives one device to each process: use %s%s 1 or %s%s", dashes,
                            validation->names->gpus, dashes, validation->names->ranks);
    return 0;
}

/* Checks a directory of MPS. It must be absolute, so that all processes find the same one. */
static int validate_directory(struct validation *validation, const char *field,
                              const char *directory)
{
    const struct request *request = validation->request;

    if (directory == NULL)
        return 0;
    if (request->sharing != SHARING_MPS)
        return refuse_field(validation, field, "needs %ssharing mps", validation->names->dashes);
    if (directory[0] != '/' || strlen(directory) > REQUEST_DIRECTORY_MAX)
        return refuse_field(validation, field,
                            "expected an absolute path of at most %d bytes, got %s",
                            REQUEST_DIRECTORY_MAX, quote(directory).text);
    return 0;
}

static int validate_directories(struct validation *validation)
{
    const struct request *request = validation->request;
    int code =
        validate_directory(validation, validation->names->mps_pipe_dir, request->mps_pipe_dir);

    return code < 0 ? code
                    : validate_directory(validation, validation->names->mps_log_dir,
                                         request->mps_log_dir);
}

static int validate_sharing(struct validation *validation)
{
    const char *dashes = validation->names->dashes;
    const struct request *request = validation->request;

    if (request->sharing == SHARING_EXCLUSIVE && request->share.known)
        return refuse_field(validation, "share", "needs %ssharing mps or time-slice", dashes);
    if (request->sharing == SHARING_EXCLUSIVE && request->memory.known)
        return refuse_field(
            validation, "memory",
            "needs %ssharing mps or time-slice (%s%s and %s%s choose devices by memory)", dashes,
            dashes, validation->names->min_free, dashes, validation->names->min_memory);
    if (request->share.known && (request->share.value < 1 || request->share.value > SHARE_WHOLE))
        return refuse_field(
            validation, "share", "expected more than 0 and at most 1, got %s",
            quantity_format_decimal(clamp_to_signed(request->share.value), SHARE_DECIMALS).text);
    if (request->memory.known && request->memory.value < 1)
        return refuse_field(validation, "memory", "expected more than 0 bytes, got 0");
    return validate_mps(validation);
}

static int validate_duration(struct validation *validation, const char *field,
                             struct optional_number duration)
{
    if (duration.known && duration.value > INT64_MAX)
        return refuse_field(validation, field, "expected at most %s, got more",
                            quantity_format_duration(INT64_MAX).text);
    return 0;
}

static int validate_durations(struct validation *validation)
{
    const struct request *request = validation->request;
    int code = validate_duration(validation, "wait", request->wait);

    if (code == 0)
        code = validate_duration(validation, "time", request->time);
    if (code == 0 && request->time.known && request->time.value < 1)
        code = refuse_field(validation, "time", "expected more than 0, got 0");
    return code;
}

static int validate_order(struct validation *validation)
{
    const char *dashes = validation->names->dashes;
    const struct request *request = validation->request;

    if (request->ranks && request->scheduling == SCHEDULING_BEST_EFFORT)
        return refuse_field(validation, "scheduling",
                            "expected gang or spread with %s%s, got best-effort", dashes,
                            validation->names->ranks);
    if (request->opportunistic && request->priority != PRIORITY_UNSAID)
        return refuse_field(validation, "priority", "cannot be combined with %sopportunistic",
                            dashes);
    if (request->nonblock && request->wait.known && request->wait.value > 0)
        return refuse_field(validation, "wait", "cannot be combined with %snonblock", dashes);
    return 0;
}

static int validate_text(struct validation *validation, const char *field, const char *text)
{
    if (text == NULL)
        return 0;
    if (*text == '\0')
        return refuse_field(validation, field, "expected some text, got none");
    if (strlen(text) > REQUEST_TEXT_MAX)
        return refuse_field(validation, field, "expected at most %d bytes, got %zu",
                            REQUEST_TEXT_MAX, strlen(text));
    if (!utf8_is_valid(text, strlen(text)))
        return refuse_field(validation, field, "expected UTF-8 text, got %s", quote(text).text);
    return 0;
}

/* Checks a list of models. An empty name in it would match every model. */
static int validate_models(struct validation *validation)
{
    const char *models = validation->request->model;
    size_t length = models == NULL ? 0 : strlen(models);

    if (length > 0 &&
        (models[0] == '|' || models[length - 1] == '|' || strstr(models, "||") != NULL))
        return refuse_field(validation, "model", "expected names with | between them, got %s",
                            quote(models).text);
    return 0;
}

static int validate_texts(struct validation *validation)
{
    const struct request *request = validation->request;
    int code = validate_text(validation, "model", request->model);

    if (code == 0)
        code = validate_text(validation, "policy", request->policy);
    if (code == 0)
        code = validate_text(validation, "affinity", request->affinity);
    if (code == 0)
        code = validate_text(validation, "name", request->name);
    return code == 0 ? validate_models(validation) : code;
}

int request_validate_named(const struct request *request, const struct request_names *names,
                           const char **ret_field, struct berth_error *error)
{
    struct validation validation = {.request = request, .names = names, .error = error};
    int code = validate_counts(&validation);

    if (code == 0)
        code = validate_sharing(&validation);
    if (code == 0)
        code = validate_directories(&validation);
    if (code == 0)
        code = validate_order(&validation);
    if (code == 0)
        code = validate_durations(&validation);
    if (code == 0)
        code = validate_texts(&validation);
    if (code < 0)
        *ret_field = validation.field;
    return code;
}

int request_validate(const struct request *request, struct berth_error *error)
{
    const char *field;

    return request_validate_named(request, &request_option_names, &field, error);
}

static void describe_count(const struct request *request, struct text *out)
{
    const struct device_count *gpus = &request->gpus;

    if (gpus->all)
        text_append(out, "all devices");
    else if (gpus->min == gpus->max)
        text_append_format(out, "%u %s", gpus->min, gpus->min == 1 ? "device" : "devices");
    else
        text_append_format(out, "%u to %u devices", gpus->min, gpus->max);
    if (request->replicas > 1)
        text_append_format(out, " for each of %u replicas", request->replicas);
}

static void describe_ids(const char *lead, const struct device_id_list *ids, struct text *out)
{
    const struct device_id *id;

    vector_for_each (id, ids) {
        text_append(out, id == ids->items ? lead : ",");
        text_append(out, device_id_format(*id).text);
    }
}

static void describe_filters(const struct request *request, struct text *out)
{
    if (request->vendor_rule == VENDOR_RULE_EXACT)
        text_append_format(out, ", vendor %s", vendor_name(request->vendor));
    if (request->vendor_rule == VENDOR_RULE_MIXED)
        text_append(out, ", vendors may mix");
    if (request->model != NULL) {
        text_append(out, ", model ");
        utf8_append_inert(out, request->model);
    }
    if (request->min_free.known)
        text_append_format(out, ", at least %s free",
                           quantity_format_size(request->min_free.value).text);
    if (request->min_memory.known)
        text_append_format(out, ", at least %s of memory",
                           quantity_format_size(request->min_memory.value).text);
    if (request->min_cap.known)
        text_append_format(out, ", capability %s or higher",
                           capability_format(request->min_cap).text);
    describe_ids(", only ", &request->wanted, out);
    describe_ids(", avoiding ", &request->avoided, out);
}

void request_describe(const struct request *request, struct text *out)
{
    describe_count(request, out);
    describe_filters(request, out);
    if (request->sharing != SHARING_EXCLUSIVE)
        text_append_format(out, ", shared by %s",
                           choice_name(sharing_names, (int)request->sharing));
    if (request->share.known)
        text_append_format(
            out, ", share %s",
            quantity_format_decimal(clamp_to_signed(request->share.value), SHARE_DECIMALS).text);
    if (request->memory.known)
        text_append_format(out, ", %s reserved", quantity_format_size(request->memory.value).text);
    if (request->time.known)
        text_append_format(out, ", for at most %s",
                           quantity_format_duration(clamp_to_signed(request->time.value)).text);
}

bool request_is_unresolved(const struct request *request)
{
    return device_id_list_is_unresolved(&request->wanted) ||
           device_id_list_is_unresolved(&request->avoided);
}

int request_resolve_devices(struct request *request, const struct device_id_list *present,
                            struct berth_error *error)
{
    enum vendor vendor =
        request->vendor_rule == VENDOR_RULE_EXACT ? request->vendor : VENDOR_UNNAMED;
    int code = device_id_list_resolve(&request->wanted, vendor, present, error);

    if (code < 0)
        return error_wrap(error, code, "--device");
    code = device_id_list_resolve(&request->avoided, vendor, present, error);
    return code < 0 ? error_wrap(error, code, "--avoid") : 0;
}
