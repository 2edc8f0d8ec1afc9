/* SPDX-License-Identifier: Apache-2.0
 *
 * A lock in Redis, as programs use it to share a machine's GPUs: SET with NX and PX takes it, DEL
 * releases it. Prints the nanoseconds of both together, over one connection.
 *
 *     redis_lock SOCKET */
#include <hiredis/hiredis.h>
#include <string.h>

#include "../measure.h"

static void command(redisContext *context, const char *text)
{
    redisReply *reply = redisCommand(context, text);

    if (reply == NULL || reply->type == REDIS_REPLY_ERROR || reply->type == REDIS_REPLY_NIL)
        give_up("redis refuses %s", text);
    freeReplyObject(reply);
}

static int64_t run_lock(void *data, uint64_t count)
{
    redisContext *context = data;
    int64_t begin = now();

    for (uint64_t i = 0; i < count; i++) {
        command(context, "SET gpu:0 holder NX PX 30000");
        command(context, "DEL gpu:0");
    }
    return now() - begin;
}

int main(int argc, char **argv)
{
    redisContext *context = argc == 2 ? redisConnectUnix(argv[1]) : NULL;

    if (context == NULL || context->err != 0)
        give_up("usage: redis_lock SOCKET (of a running server)");
    printf("%.3f\n", quickest(run_lock, context));
    redisFree(context);
    return 0;
}
