/* One link to a queue manager: a call goes out, its reply comes back, in order (trigmon/wire/PROTOCOL.md).

   A link that has lost its place in the conversation is never used again: every further call is 2009. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define HELLO_LIMIT 16384u
#define REPLY_LIMIT (256u << 20)
#define RECEIVE 65536u

/* Tells on standard error what a refusal was about, where TRIGMON_MQI_TRACE asks for it: the MQI has numbers alone. */
void report(const char *what, const uint8_t *text, size_t length) {
    if (getenv("TRIGMON_MQI_TRACE") == NULL) return;
    fprintf(stderr, "libmqm_r: %s: %.*s\n", what, (int)(length > 2000 ? 2000 : length), (const char *)text);
}

static void report_errno(const char *what) {
    const char *text = strerror(errno);
    report(what, (const uint8_t *)text, strlen(text));
}

/* Returns a connected socket, or -1 with the reason: 2035 for one that this user may not use, else 2059. */
int connect_unix(const char *path, MQLONG *reason) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *reason = MQRC_Q_MGR_NOT_AVAILABLE;
    if (strlen(path) >= sizeof address.sun_path) return -1;
    strcpy(address.sun_path, path);
    int link = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link < 0) return -1;
    for (int attempt = 0; connect(link, (struct sockaddr *)&address, sizeof address) != 0; attempt++) {
        if ((errno == EAGAIN || errno == EINTR) && attempt < 1000) { /* the listener's backlog is full */
            struct timespec pause = {0, 10000000};
            nanosleep(&pause, NULL);
            continue;
        }
        if (errno == EACCES || errno == EPERM) *reason = MQRC_NOT_AUTHORIZED;
        report_errno(path);
        close(link);
        return -1;
    }
    return link;
}

void break_link(struct connection *connection, MQLONG reason) {
    if (connection->broken == 0) connection->broken = reason;
    if (connection->link >= 0) close(connection->link);
    connection->link = -1;
}

/* Begins a frame: room for its length, then [sequence, [tag, ...]] with this many fields behind the tag. */
void begin_call(struct connection *connection, const char *tag, uint32_t fields) {
    struct writer *out = &connection->out;
    out->length = 0;
    out->failed = 0;
    if (!writer_reserve(out, 4)) return;
    out->length = 4;
    write_array(out, 2);
    write_int(out, connection->sequence + 1);
    write_array(out, fields + 1);
    write_text(out, tag, strlen(tag));
}

static ssize_t send_some(struct connection *connection, const uint8_t *bytes, size_t length) {
    return connection->tls ? tls_send(connection, bytes, length) : send(connection->link, bytes, length, MSG_NOSIGNAL);
}

static ssize_t receive_some(struct connection *connection, uint8_t *bytes, size_t room) {
    return connection->tls ? tls_receive(connection, bytes, room) : recv(connection->link, bytes, room, 0);
}

/* Sets how long the other side may be silent while a connection is made, in seconds; 0 is any time. */
void be_patient(struct connection *connection, int seconds) {
    struct timeval patience = {seconds, 0};
    setsockopt(connection->link, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

static struct result send_frame(struct connection *connection) {
    struct writer *out = &connection->out;
    if (out->failed) return failed(MQRC_STORAGE_NOT_AVAILABLE);
    size_t body = out->length - 4;
    if (body > connection->frame_limit) return failed(MQRC_MSG_TOO_BIG_FOR_Q_MGR);
    for (int i = 0; i < 4; i++) out->bytes[i] = (uint8_t)(body >> (24 - 8 * i));
    for (size_t sent = 0; sent < out->length;) {
        ssize_t count = send_some(connection, out->bytes + sent, out->length - sent);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) { /* its last word, the reason why it ended the link, may lie here to be read */
            if (errno == EPIPE || errno == ECONNRESET) return (struct result){MQCC_OK, MQRC_NONE};
            break_link(connection, MQRC_CONNECTION_BROKEN);
            return failed(MQRC_CONNECTION_BROKEN);
        }
        sent += (size_t)count;
    }
    return (struct result){MQCC_OK, MQRC_NONE};
}

struct result send_call(struct connection *connection) {
    if (connection->broken) return failed(connection->broken);
    struct result result = send_frame(connection);
    if (result.comp_code == MQCC_OK) connection->sequence++;
    return result;
}

/* Makes ``wanted`` bytes available from in_start on. Returns 0 where the link ends before, or no memory is there. */
static int fill(struct connection *connection, size_t wanted) {
    size_t have = connection->in_end - connection->in_start;
    if (have >= wanted) return 1;
    if (connection->in_start > 0) {
        memmove(connection->in, connection->in + connection->in_start, have);
        connection->in_start = 0;
        connection->in_end = have;
    }
    size_t room = wanted < RECEIVE ? RECEIVE : wanted;
    if (connection->in_room < room) {
        uint8_t *bytes = realloc(connection->in, room);
        if (bytes == NULL) return 0;
        connection->in = bytes;
        connection->in_room = room;
    }
    while (connection->in_end < wanted) {
        ssize_t count = receive_some(connection, connection->in + connection->in_end, connection->in_room - connection->in_end);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) {
            if (count < 0) report_errno("the link to the queue manager");
            return 0;
        }
        connection->in_end += (size_t)count;
    }
    return 1;
}

/* Reads a frame. Its body stays where it is until the next one is read. */
static int next_body(struct connection *connection, uint32_t limit, struct reader *body) {
    if (!fill(connection, 4)) return 0;
    const uint8_t *at = connection->in + connection->in_start;
    uint32_t length = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    if (length > limit || !fill(connection, 4 + (size_t)length)) return 0;
    at = connection->in + connection->in_start + 4;
    *body = (struct reader){at, at + length, 0};
    connection->in_start += 4 + (size_t)length;
    return 1;
}

/* Reads a struct's begin: its tag, and of any but the greeting its warning. */
static int read_tagged(struct reply *reply) {
    struct reader *r = &reply->reader;
    uint32_t count = read_array(r);
    struct slice tag = read_text(r);
    if (r->failed || tag.length >= sizeof reply->tag) return 0;
    memcpy(reply->tag, tag.bytes, tag.length);
    reply->tag[tag.length] = '\0';
    reply->fields = count - 1;
    return 1;
}

/* Returns the reason of a ``refused``, whose reader stands behind its warning. */
static MQLONG refusal(struct reply *reply) {
    MQLONG reason = (MQLONG)read_int(&reply->reader);
    if (reply->fields > 1) {
        struct slice about = read_text(&reply->reader);
        char what[32];
        snprintf(what, sizeof what, "refused with %d", reason);
        /* That no message is there is asked many times, and no news. */
        if (!reply->reader.failed && reason != MQRC_NO_MSG_AVAILABLE) report(what, about.bytes, about.length);
    }
    return reply->reader.failed || reason == 0 ? MQRC_CONNECTION_BROKEN : reason;
}

struct result receive_reply(struct connection *connection, struct reply *reply) {
    if (connection->broken) return failed(connection->broken);
    memset(reply, 0, sizeof *reply);
    if (!next_body(connection, REPLY_LIMIT, &reply->reader)) {
        break_link(connection, MQRC_CONNECTION_BROKEN);
        return failed(MQRC_CONNECTION_BROKEN);
    }
    int64_t due = connection->heard + 1;
    uint32_t parts = read_array(&reply->reader);
    int64_t number = read_int(&reply->reader);
    if (parts < 2 || !read_tagged(reply) || (number != due && number != 0)) {
        break_link(connection, MQRC_CONNECTION_BROKEN);
        return failed(MQRC_CONNECTION_BROKEN);
    }
    if (reply->fields > 0) {
        reply->warning = (MQLONG)read_int(&reply->reader);
        reply->fields--;
    }
    if (number == due) connection->heard++;
    if (strcmp(reply->tag, "refused") == 0) {
        MQLONG reason = refusal(reply);
        if (number != due) break_link(connection, reason); /* a word to the whole connection is the last one */
        return failed(reason);
    }
    if (reply->reader.failed || number != due) {
        break_link(connection, MQRC_CONNECTION_BROKEN);
        return failed(MQRC_CONNECTION_BROKEN);
    }
    return warned(reply->warning);
}

/* Sends the call that was written and returns its reply, behind those of asynchronous puts. */
struct result exchange(struct connection *connection, struct reply *reply) {
    struct result result = send_call(connection);
    if (result.comp_code != MQCC_OK) return result;
    hear_puts(connection, 0);
    return receive_reply(connection, reply);
}

static int make_client_id(char *id) {
    uint8_t bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return 0;
    for (int i = 0; i < 16; i++) snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return 1;
}

/* Writes the hello. The password is its last value: no room that it lay in is given up behind it. */
static void write_hello(struct connection *connection, const char *application, size_t length, const char *user,
                        const char *password) {
    const char *run = getenv("TRIGMON_RUN");
    struct writer *out = &connection->out;
    out->length = 0;
    out->failed = 0;
    if (!writer_reserve(out, 4)) return;
    out->length = 4;
    write_array(out, user[0] ? 8 : 6);
    write_text(out, "hello", 5);
    write_int(out, 1);
    write_text(out, connection->client_id, strlen(connection->client_id));
    write_text(out, application, length);
    write_int(out, getpid());
    write_text(out, run ? run : "", run ? strlen(run) : 0);
    if (user[0] == '\0') return;
    write_text(out, user, strlen(user));
    write_text(out, password, strlen(password));
}

/* Greets the queue manager; fills in its name and its limit. A user and a password are given by TLS alone. */
struct result greet(struct connection *connection, const char *application, size_t length, const char *user,
                    const char *password) {
    if (!make_client_id(connection->client_id)) return failed(MQRC_ENVIRONMENT_ERROR);
    write_hello(connection, application, length, user, password);
    connection->frame_limit = HELLO_LIMIT;
    struct result result = send_frame(connection);
    if (connection->out.bytes != NULL) explicit_bzero(connection->out.bytes, connection->out.room);
    struct reply reply = {0};
    if (result.comp_code != MQCC_OK) return result;
    if (!next_body(connection, HELLO_LIMIT, &reply.reader) || !read_tagged(&reply))
        return failed(tls_has_refused(connection) ? MQRC_SSL_INITIALIZATION_ERROR : MQRC_Q_MGR_NOT_AVAILABLE);
    struct reader *r = &reply.reader;
    if (strcmp(reply.tag, "refused") == 0) {
        reply.fields--;
        read_int(r);
        return failed(refusal(&reply));
    }
    int64_t protocol = read_int(r);
    struct slice name = read_text(r);
    connection->frame_limit = 4194304 + 65536;
    if (reply.fields > 4) {
        skip_value(r);
        skip_value(r);
        connection->frame_limit = (uint32_t)read_int(r);
    }
    if (r->failed || strcmp(reply.tag, "welcome") != 0 || protocol != 1 || name.length > NAME_LENGTH)
        return failed(MQRC_Q_MGR_NOT_AVAILABLE);
    memcpy(connection->name, name.bytes, name.length);
    connection->name[name.length] = '\0';
    return (struct result){MQCC_OK, MQRC_NONE};
}
