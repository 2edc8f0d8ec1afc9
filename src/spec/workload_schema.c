/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/schema.h"
#include "spec/workload.h"

void workload_write_schema(struct json *json)
{
    schema_write(json, &(struct schema_source){
                           .id = "urn:berth:spec:1",
                           .title = "berth spec file",
                           .description = "What a workload wants of a pool of GPUs, for berth run "
                                          "--spec and the other verbs that take a request.",
                           .record = &workload_record,
                           .contradictions = workload_contradictions,
                           .movable = &workload_gpu,
                       });
}
