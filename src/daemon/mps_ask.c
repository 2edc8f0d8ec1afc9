/* SPDX-License-Identifier: Apache-2.0
 *
 * What a control daemon is told by its environment, and what it is asked by its own program.
 */
#include "daemon/mps_control.h"
#include "daemon/variables.h"

void mps_fill_environment(const struct control *control, struct variables *out)
{
    const struct device *device = mps_device(control);
    struct text index = {0};

    if (device != NULL && device->uuid == NULL)
        text_append_number(&index, device->id.index);
    if (device != NULL)
        variables_add(out, "CUDA_VISIBLE_DEVICES",
                      device->uuid != NULL ? device->uuid : text_string(&index));
    variables_add(out, "CUDA_DEVICE_ORDER", "PCI_BUS_ID");
    variables_add(out, "CUDA_MPS_PIPE_DIRECTORY", control->site.pipe);
    variables_add(out, "CUDA_MPS_LOG_DIRECTORY", control->site.log);
    variables_add(out, "BERTH_SOCKET", control->pool->settings.socket);
    if (device != NULL)
        variables_add(out, "BERTH_MPS", device_id_format(device->id).text);
    out->failed = out->failed || text_failed(&index);
    text_finish(&index);
}

void mps_ask(struct control *control, const char *words, int64_t deadline)
{
    const char *program = mps_program(control->pool);
    struct variables variables = {0};
    struct string_list command = {0};
    struct text socket = {0};

    if (control->helper != NULL || program == NULL)
        return;
    mps_fill_environment(control, &variables);
    text_append_format(&socket, "%s/control", control->site.pipe);
    if (!variables.failed && !text_failed(&socket) && string_list_append(&command, program) == 0)
        control->helper = helper_start(control->pool, &(struct helper_order){
                                                          .words = &command,
                                                          .environment = &variables.list,
                                                          .deadline = deadline,
                                                          .persona = &control->site.persona,
                                                          .input = words,
                                                          .awaited = text_string(&socket),
                                                          .done = mps_answered,
                                                          .context = control,
                                                      });
    string_list_finish(&variables.list);
    string_list_finish(&command);
    text_finish(&socket);
}
