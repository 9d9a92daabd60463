/* What the files of the library share. Nothing here is visible outside it. */
#ifndef TRIGMON_INTERNAL_H
#define TRIGMON_INTERNAL_H

#include <pthread.h>
#include <sys/types.h>

#include "mqi.h"
#include "msgpack.h"

#define TRIGMON_CCSID 1208 /* UTF-8: the queue manager's own */
#define NAME_LENGTH 48
#define MOST_CONNECTIONS 4096
#define MOST_ASYNC_PUTS 64 /* how many puts may be unanswered at once */
#define TOKENS 4096        /* how many messages a connection knows by their token */

/* An open object. ``number`` is the queue manager's, ``hobj`` the program's. */
struct object {
    int64_t number;
    MQHOBJ hobj;
    MQLONG type;
    char q_name[NAME_LENGTH + 1];
    struct consumer *consumer; /* what MQCB registered, or NULL */
    struct object *next;
};

/* What the asynchronous puts since the last MQSTAT have come to. */
struct put_status {
    MQLONG comp_code; /* of the first failure, before that of the first warning */
    MQLONG reason;
    MQLONG successes;
    MQLONG warnings;
    MQLONG failures;
    char q_name[NAME_LENGTH + 1];
};

/* An asynchronous put whose reply was not read yet. */
struct unanswered_put {
    char q_name[NAME_LENGTH + 1];
    int is_unit;
};

struct message_token {
    uint64_t number;
    uint8_t msg_id[24];
    uint8_t correl_id[24];
};

struct connection {
    pthread_mutex_t lock;
    pthread_t owner;
    pid_t pid;
    MQHCONN hconn;
    MQLONG share; /* MQCNO_HANDLE_SHARE_* */
    int users;    /* threads that are in a call of it */
    int ended;
    int is_closing; /* MQDISC has begun: no other thread is let in */
    int link;
    struct tls *tls; /* what the link is spoken by, or NULL */
    int broken; /* the reason of a link that is no longer used, or 0 */
    int64_t sequence; /* the number of the last call that was sent */
    int64_t heard;    /* the number of the last reply */
    int64_t unit;
    int in_unit;
    int marked;
    int unit_failed; /* an asynchronous put of the unit of work failed: it cannot be committed */
    uint32_t frame_limit;
    char name[NAME_LENGTH + 1];  /* the queue manager's */
    char asked[NAME_LENGTH + 1]; /* the name that MQCONN was given */
    char client_id[33];
    struct writer out;
    uint8_t *in;
    size_t in_room, in_start, in_end;
    struct object *objects;
    MQHOBJ last_hobj;
    struct put_status status;
    struct unanswered_put unanswered[MOST_ASYNC_PUTS + 1];
    int unanswered_count;
    struct message_token *tokens;
    uint64_t last_token;
    struct consumption *consumption; /* what MQCTL controls, or NULL */
};

/* How a call ended; compcode 0 and reason 0 when it is made. */
struct result {
    MQLONG comp_code;
    MQLONG reason;
};

static inline struct result failed(MQLONG reason) {
    return (struct result){MQCC_FAILED, reason};
}

static inline struct result warned(MQLONG reason) {
    return (struct result){reason ? MQCC_WARNING : MQCC_OK, reason};
}

/* A reply: the reader stands behind the tag, with ``fields`` values left. */
struct reply {
    char tag[24];
    uint32_t fields;
    MQLONG warning;
    struct reader reader;
};

/* connections.c */
struct connection *enter(MQHCONN hconn, struct result *result);
void leave(struct connection *connection);
struct connection *borrow(MQHCONN hconn, MQLONG *reason);
void use_again(struct connection *connection);
void give_back(struct connection *connection);
MQLONG take_turn(struct connection *connection);
MQHCONN connected_before(const char *name);
struct connection *new_connection(const char *asked, MQLONG share);
int add_connection(struct connection *connection);
void free_connection(struct connection *connection);
void watch_forks(void);
void answer(struct result result, PMQLONG comp_code, PMQLONG reason);
struct object *find_object(struct connection *connection, MQHOBJ hobj);
int is_connected(MQHCONN hconn);

/* transport.c */
int connect_unix(const char *path, MQLONG *reason);
void begin_call(struct connection *connection, const char *tag, uint32_t fields);
struct result send_call(struct connection *connection);
struct result receive_reply(struct connection *connection, struct reply *reply);
struct result exchange(struct connection *connection, struct reply *reply);
struct result greet(struct connection *connection, const char *application, size_t length, const char *user,
                    const char *password);
void be_patient(struct connection *connection, int seconds);
void break_link(struct connection *connection, MQLONG reason);
void report(const char *what, const uint8_t *text, size_t length);

/* tls.c */
ssize_t tls_send(struct connection *connection, const void *bytes, size_t length);
ssize_t tls_receive(struct connection *connection, void *bytes, size_t room);
int tls_has_refused(const struct connection *connection);
void end_tls(struct connection *connection);

/* fields.c: fixed fields of characters, blank or NUL padded */
size_t field_length(const char *field, size_t size);
void fill_field(char *field, size_t size, const uint8_t *text, size_t length);
void write_field(struct writer *w, const char *field, size_t size);
void name_of_field(char *name, const char *field);
int is_struct(const void *structure, const char *id, MQLONG most);
int is_zero(const void *bytes, size_t size);
struct slice charv_text(const MQCHARV *text, const void *base, int *is_valid);

/* descriptor.c */
void write_descriptor(struct writer *w, const MQMD *md, MQLONG ccsid, const char *format, MQLONG encoding);
void read_descriptor(struct reader *r, MQMD *md);
int64_t ms_of(const char *date, const char *time);
void date_and_time(int64_t ms, char *date, char *time);

/* async_put.c */
void hear_puts(struct connection *connection, int all_but);
void defer_put(struct connection *connection, const char *q_name, int is_unit);

/* units.c */
struct result commit(struct connection *connection);

/* get.c */
struct got {
    MQMD md;
    struct slice data;
    MQLONG length;
    char group_status, segment_status;
};
struct result get_message(struct connection *c, struct object *object, MQMD *md, MQGMO *gmo, MQLONG length, void *buffer,
                          MQLONG *data_length);
int get_is_valid(const MQMD *md, const MQGMO *gmo, struct result *result);

/* convert.c: returns the bytes of the target, or -1 for a source that is not in its set of characters */
int is_known_ccsid(MQLONG ccsid);
int64_t convert_text(MQLONG from, const uint8_t *source, size_t length, MQLONG to, struct writer *target, int substitute);

#endif
