/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor_facts.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/system/clock.h"
#include "cli/machine_source.h"
#include "client/session.h"
#include "engine/policy/policies.h"
#include "view/pool_view_fetch.h"

static int find_inventory(struct doctor_facts *facts, const char *option, struct berth_error *error)
{
    const char *named = getenv("BERTH_INVENTORY");

    if (option != NULL && *option == '\0')
        return error_set(error, BERTH_ERROR_INVALID, "--inventory: expected a file, got nothing");
    facts->inventory = option != NULL ? option : named != NULL && *named != '\0' ? named : NULL;
    return 0;
}

static void probe_machine(struct doctor_facts *facts)
{
    struct machine_source source = {0};
    int64_t began;

    if (machine_source_open(&source, facts->inventory, NULL, &facts->probe_error) < 0)
        return;
    facts->probe_deadline = source.deadline;
    began = clock_now();
    machine_source_scan(&source, &facts->machine, &facts->probe_error);
    facts->probe_time = clock_now() - began;
    machine_source_close(&source);
}

static void query_daemon(struct doctor_facts *facts)
{
    struct session session;

    if (session_open(&session, &facts->address, DIAL_ONLY, &facts->daemon_error) < 0)
        return;
    facts->daemon_pid = session_daemon_pid(&session);
    facts->has_daemon_uid = session_daemon_user(&session, &facts->daemon_uid);
    pool_view_fetch(&session, &facts->view, &facts->daemon_error);
    facts->view_time = clock_read(CLOCK_REALTIME);
    session_close(&session);
}

/* Checks a configuration as berthd --check-config does. */
static int check_configuration(const struct configuration *configuration, const char *path,
                               struct berth_error *error)
{
    const struct configured_policy *named = &configuration->policy;
    const struct policy *policy;
    int code = policy_find(named->name, &policy, error);

    return code < 0 ? error_wrap(error, code, "%s:%u:%u", path, named->line, named->column)
                    : configuration_check_programs(path, error);
}

/* Reads the configuration that the pool would start with. */
static int read_configuration(struct doctor_facts *facts, struct berth_error *error)
{
    const char *path;
    int code;

    /* An inventory that cannot be read leaves the address unknown. */
    facts->reads_own_configuration =
        facts->address_error.code == 0 ? facts->address.own : facts->inventory != NULL;
    configuration_append_path(facts->reads_own_configuration, &facts->configuration_path);
    if (text_failed(&facts->configuration_path))
        return error_set_memory(error);
    path = facts->configuration_path.length > 0 ? facts->configuration_path.bytes : NULL;
    code = configuration_read(path, &facts->configuration, &facts->configuration_error);
    if (code == 0)
        code = check_configuration(&facts->configuration, path, &facts->configuration_error);
    return code == BERTH_ERROR_MEMORY ? error_set_memory(error) : 0;
}

int doctor_facts_gather(struct doctor_facts *facts, const char *inventory,
                        struct berth_error *error)
{
    int code;

    *facts = (struct doctor_facts){0};
    code = machine_source_sysroot(&facts->sysroot, error);
    if (code == 0)
        code = find_inventory(facts, inventory, error);
    if (code < 0)
        return code;
    probe_machine(facts);
    if (pool_address_find(inventory, &facts->address, &facts->address_error) == 0)
        query_daemon(facts);
    return read_configuration(facts, error);
}

bool doctor_facts_has_view(const struct doctor_facts *facts)
{
    return facts->address_error.code == 0 && facts->daemon_error.code == 0;
}

bool doctor_facts_is_startable(const struct doctor_facts *facts)
{
    return facts->address.own && facts->daemon_error.code == BERTH_ERROR_NOT_FOUND;
}

void doctor_facts_finish(struct doctor_facts *facts)
{
    free(facts->sysroot);
    machine_report_finish(&facts->machine);
    pool_address_finish(&facts->address);
    pool_view_finish(&facts->view);
    text_finish(&facts->configuration_path);
    configuration_finish(&facts->configuration);
}
