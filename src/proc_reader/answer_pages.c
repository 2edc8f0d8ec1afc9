/* SPDX-License-Identifier: Apache-2.0 */
#include "proc_reader/answer_pages.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* More than the fields of a process and of a page need, without their lists and texts. */
enum { PROCESS_SIZE = 256, PAGE_SIZE = 256 };

static size_t count_bytes(const struct reader_process *process)
{
    const char *const texts[] = {process->container, process->socket, process->devices};
    size_t bytes =
        PROCESS_SIZE + (process->groups.count + process->ancestors.count) * sizeof(uint32_t);

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        bytes += texts[i] == NULL ? 0 : strlen(texts[i]);
    return bytes;
}

/* Sends a packet with descriptors. The kernel limits the number of sent descriptors that are not
 * received yet; the other end receives them soon. */
static int send_packet(int socket, const struct text *packet, const int *descriptors, size_t count)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(READER_PAGE_MAX * sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = packet->bytes, .iov_len = packet->length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (count > 0) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
    }
    while (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) {
        if (errno == ETOOMANYREFS)
            nanosleep(&moment, NULL);
        else if (errno != EINTR)
            return BERTH_ERROR_IO;
    }
    return 0;
}

/* Sends the page and empties it. */
static int send_page(struct answer_pages *pages)
{
    int descriptors[READER_PAGE_MAX];
    size_t count = 0;
    struct reader_answer *page = &pages->page;
    const struct reader_process *process;
    uint64_t number = page->number;
    int code;

    text_clear(&pages->packet);
    code = reader_answer_encode(page, &pages->packet);
    vector_for_each (process, &page->processes) {
        if (process->has_descriptor)
            descriptors[count++] = process->descriptor;
    }
    if (code == 0)
        code = send_packet(pages->socket, &pages->packet, descriptors, count);
    reader_answer_finish(page);
    page->number = number;
    pages->bytes = 0;
    return code;
}

bool answer_pages_is_full(const struct answer_pages *pages)
{
    return pages->count >= READER_PROCESSES_MAX;
}

int answer_pages_add(struct answer_pages *pages, struct reader_process *process)
{
    struct reader_answer *page = &pages->page;
    size_t bytes = count_bytes(process);
    struct reader_process *place;
    int code = 0;

    process->has_descriptor = process->descriptor >= 0;
    if (page->processes.count >= READER_PAGE_MAX ||
        pages->bytes + bytes > READER_PACKET_MAX - PAGE_SIZE) {
        bool partial = page->partial;
        struct optional_number exit_code = page->exit_code;

        page->more = true;
        code = send_page(pages);
        page->partial = partial;
        page->exit_code = exit_code;
    }
    place = code < 0 ? NULL : vector_append(&page->processes);
    if (place == NULL)
        return code < 0 ? code : BERTH_ERROR_MEMORY;
    *place = *process;
    pages->bytes += bytes;
    pages->count++;
    return 0;
}

int answer_pages_end(struct answer_pages *pages)
{
    int code;

    pages->page.more = false;
    code = send_page(pages);
    text_finish(&pages->packet);
    return code;
}
