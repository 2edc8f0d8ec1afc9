/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/mps/mps_query.h"

#include "base/string_list.h"
#include "base/text/text.h"
#include "daemon/core/child.h"
#include "daemon/core/child_environment.h"
#include "daemon/mps/mps_rules.h"
#include "model/machine/device.h"

void mps_query_fill_environment(const struct mps_target *target, struct child_environment *out)
{
    const struct device *device = target->device;
    struct text index = {0};

    if (device != NULL && device->uuid == NULL)
        text_append_number(&index, device->id.index);
    if (device != NULL)
        child_environment_add(out, "CUDA_VISIBLE_DEVICES",
                              device->uuid != NULL ? device->uuid : text_string(&index));
    child_environment_add(out, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    child_environment_add(out, "CUDA_MPS_PIPE_DIRECTORY", target->site->pipe);
    child_environment_add(out, "CUDA_MPS_LOG_DIRECTORY", target->site->log);
    child_environment_add(out, "BERTH_SOCKET", target->socket);
    if (device != NULL)
        child_environment_add(out, "BERTH_MPS", device_id_format(device->id).text);
    out->failed = out->failed || text_failed(&index);
    text_finish(&index);
}

struct helper *mps_query_start(struct runner *runner, const struct mps_query *query)
{
    struct child_environment variables = {0};
    struct string_list command = {0};
    struct text socket = {0};
    struct helper *helper = NULL;

    mps_query_fill_environment(&query->target, &variables);
    text_append_format(&socket, "%s/control", query->target.site->pipe);
    if (!variables.failed && !text_failed(&socket) &&
        string_list_append(&command, query->program) == 0)
        helper = runner_start(runner, &(struct runner_order){
                                          .words = &command,
                                          .environment = &variables.list,
                                          .deadline = query->deadline,
                                          .launcher = query->launcher,
                                          .program = LAUNCHER_MPS_QUERY,
                                          .persona = query->target.site->persona,
                                          .input = query->words,
                                          .awaited = text_string(&socket),
                                          .done = query->answered,
                                          .context = query->context,
                                      });
    string_list_finish(&variables.list);
    string_list_finish(&command);
    text_finish(&socket);
    return helper;
}

void mps_query_run(const struct launcher_work *work)
{
    struct child_work order;
    int number = child_read_work(work, &order);

    if (number == 0)
        number = mps_rules_check(work->context, &(struct mps_rules_order){
                                                    .program = order.order.words[0],
                                                    .arguments = order.order.words + 1,
                                                    .uid = order.order.persona.uid,
                                                    .gid = order.order.persona.gid,
                                                    .environment = order.order.environment,
                                                });
    child_execute(&order, number);
}
