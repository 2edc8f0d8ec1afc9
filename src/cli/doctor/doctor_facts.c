/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor_facts.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "cli/machine_source.h"
#include "client/session.h"
#include "view/pool_view_fetch.h"

static int probe_machine(struct doctor_facts *facts, const char *inventory,
                         struct berth_error *error)
{
    struct machine_source source = {0};
    int64_t began;
    int code = machine_source_open(&source, inventory, NULL, error);

    if (code < 0)
        return code;
    facts->is_virtual = source.is_virtual;
    facts->probe_deadline = source.deadline;
    began = clock_now();
    machine_source_scan(&source, &facts->machine, &facts->probe_error);
    facts->probe_time = clock_now() - began;
    machine_source_close(&source);
    return 0;
}

static void query_daemon(struct doctor_facts *facts)
{
    struct session session;

    if (session_open(&session, &facts->address, DIAL_ONLY, &facts->daemon_error) < 0)
        return;
    facts->daemon_pid = session_daemon_pid(&session);
    pool_view_fetch(&session, &facts->view, &facts->daemon_error);
    facts->view_time = clock_read(CLOCK_REALTIME);
    session_close(&session);
}

int doctor_facts_gather(struct doctor_facts *facts, const char *inventory,
                        struct berth_error *error)
{
    int code;

    *facts = (struct doctor_facts){0};
    code = machine_source_sysroot(&facts->sysroot, error);
    if (code == 0)
        code = probe_machine(facts, inventory, error);
    if (code < 0)
        return code;
    if (pool_address_find(inventory, &facts->address, &facts->address_error) == 0)
        query_daemon(facts);
    return 0;
}

void doctor_facts_finish(struct doctor_facts *facts)
{
    free(facts->sysroot);
    machine_report_finish(&facts->machine);
    pool_address_finish(&facts->address);
    pool_view_finish(&facts->view);
}
