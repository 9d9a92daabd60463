/* Connections by their handles, who may use them, MQCONN and MQDISC.

   A handle is the place in a table with a count of how often the place was used, so an old one is not mistaken for a new
   one. A connection is freed when the last thread has left it. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "callback.h"
#include "internal.h"
#include "properties.h"

#define PLACE_BITS 12

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct connection *table[MOST_CONNECTIONS];
static uint32_t uses[MOST_CONNECTIONS];

void answer(struct result result, PMQLONG comp_code, PMQLONG reason) {
    if (comp_code != NULL) *comp_code = result.comp_code;
    if (reason != NULL) *reason = result.reason;
}

/* Returns the connection of a handle with its table locked, or NULL. */
static struct connection *looked_up(MQHCONN hconn) {
    if (hconn <= 0) return NULL;
    struct connection *found = table[hconn & (MOST_CONNECTIONS - 1)];
    return found != NULL && found->hconn == hconn && !found->ended && found->pid == getpid() ? found : NULL;
}

static void freed(struct connection *connection) {
    if (connection->link >= 0) close(connection->link);
    while (connection->objects != NULL) {
        struct object *next = connection->objects->next;
        free(connection->objects->consumer);
        free(connection->objects);
        connection->objects = next;
    }
    free(connection->consumption);
    free(connection->tokens);
    free(connection->out.bytes);
    free(connection->in);
    pthread_mutex_destroy(&connection->lock);
    free(connection);
}

/* Gives one use back with its table locked; the last one of an ended connection frees it. */
static void drop_use(struct connection *connection) {
    if (--connection->users == 0 && connection->ended) {
        table[connection->hconn & (MOST_CONNECTIONS - 1)] = NULL;
        freed(connection);
    }
}

static MQLONG may_use(const struct connection *connection) {
    int is_owner = pthread_equal(connection->owner, pthread_self());
    MQLONG busy = consumer_busy(connection);
    if (busy) return busy;
    if (connection->share == MQCNO_HANDLE_SHARE_NONE && !is_owner && !is_consumer_thread(connection)) return MQRC_HCONN_ERROR;
    return MQRC_NONE;
}

/* Returns the connection of a handle for one call of this thread, locked; or NULL with the reason. */
struct connection *enter(MQHCONN hconn, struct result *result) {
    pthread_mutex_lock(&table_lock);
    struct connection *connection = looked_up(hconn);
    MQLONG reason = connection == NULL ? MQRC_HCONN_ERROR : may_use(connection);
    if (reason == MQRC_NONE) connection->users++;
    pthread_mutex_unlock(&table_lock);
    *result = failed(reason);
    if (reason != MQRC_NONE) return NULL;
    if (connection->share != MQCNO_HANDLE_SHARE_NO_BLOCK)
        pthread_mutex_lock(&connection->lock);
    else if (pthread_mutex_trylock(&connection->lock) != 0)
        reason = MQRC_CALL_IN_PROGRESS;
    if (reason == MQRC_NONE && connection->ended) {
        pthread_mutex_unlock(&connection->lock);
        reason = MQRC_HCONN_ERROR;
    }
    *result = (struct result){reason ? MQCC_FAILED : MQCC_OK, reason};
    if (reason == MQRC_NONE) return connection;
    pthread_mutex_lock(&table_lock);
    drop_use(connection);
    pthread_mutex_unlock(&table_lock);
    return NULL;
}

void leave(struct connection *connection) {
    pthread_mutex_unlock(&connection->lock);
    pthread_mutex_lock(&table_lock);
    drop_use(connection);
    pthread_mutex_unlock(&table_lock);
}

/* Returns the connection that MQCTL controls, used but not locked: its own thread may hold the lock in a wait. */
struct connection *borrow(MQHCONN hconn) {
    pthread_mutex_lock(&table_lock);
    struct connection *connection = looked_up(hconn);
    if (connection != NULL) connection->users++;
    pthread_mutex_unlock(&table_lock);
    return connection;
}

void give_back(struct connection *connection) {
    pthread_mutex_lock(&table_lock);
    drop_use(connection);
    pthread_mutex_unlock(&table_lock);
}

int is_connected(MQHCONN hconn) {
    pthread_mutex_lock(&table_lock);
    int found = looked_up(hconn) != NULL;
    pthread_mutex_unlock(&table_lock);
    return found;
}

struct object *find_object(struct connection *connection, MQHOBJ hobj) {
    struct object *object = connection->objects;
    while (object != NULL && object->hobj != hobj) object = object->next;
    return object;
}

/* Returns this thread's own connection of the same name, which a second MQCONN is answered with (2002), or 0. */
static MQHCONN connected_before(const char *name) {
    MQHCONN found = 0;
    pthread_mutex_lock(&table_lock);
    for (int place = 0; place < MOST_CONNECTIONS && !found; place++) {
        struct connection *each = table[place];
        if (each == NULL || each->ended || each->pid != getpid() || each->share != MQCNO_HANDLE_SHARE_NONE) continue;
        if (pthread_equal(each->owner, pthread_self()) && !each->broken && strcmp(each->asked, name) == 0)
            found = each->hconn;
    }
    pthread_mutex_unlock(&table_lock);
    return found;
}

static void before_fork(void) {
    pthread_mutex_lock(&table_lock);
}

static void in_parent(void) {
    pthread_mutex_unlock(&table_lock);
}

/* Closes the links in a forked child: else a parent that is killed would not be seen to be gone while the child lives. */
static void in_child(void) {
    for (int place = 0; place < MOST_CONNECTIONS; place++) {
        if (table[place] == NULL || table[place]->link < 0) continue;
        close(table[place]->link);
        table[place]->link = -1;
    }
    pthread_mutex_unlock(&table_lock);
}

static void watch_forks(void) {
    pthread_atfork(before_fork, in_parent, in_child);
}

static int add(struct connection *connection) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&table_lock);
    int place = 0;
    while (place < MOST_CONNECTIONS && table[place] != NULL) place++;
    if (place < MOST_CONNECTIONS) {
        uses[place] = uses[place] % ((1u << (31 - PLACE_BITS)) - 1) + 1;
        connection->hconn = (MQHCONN)(uses[place] << PLACE_BITS | (uint32_t)place);
        table[place] = connection;
    }
    pthread_mutex_unlock(&table_lock);
    return place < MOST_CONNECTIONS;
}

/* Copies as much of the connect options as their version has, and checks them. */
static MQLONG read_options(const void *given, MQCNO *options) {
    static const size_t lengths[] = {
        0,
        offsetof(MQCNO, ClientConnOffset),
        offsetof(MQCNO, ConnTag),
        offsetof(MQCNO, SSLConfigPtr),
        offsetof(MQCNO, ConnectionId),
        offsetof(MQCNO, CCDTUrlPtr),
        offsetof(MQCNO, ApplName),
        offsetof(MQCNO, BalanceParmsPtr),
        sizeof(MQCNO),
    };
    *options = (MQCNO){.StrucId = {'C', 'N', 'O', ' '}, .Version = 1};
    if (given == NULL) return MQRC_NONE;
    if (!is_struct(given, "CNO ", 8)) return MQRC_CNO_ERROR;
    MQLONG version;
    memcpy(&version, (const char *)given + 4, sizeof version);
    memcpy(options, given, lengths[version]);
    MQLONG shares = options->Options & (MQCNO_HANDLE_SHARE_NONE | MQCNO_HANDLE_SHARE_BLOCK | MQCNO_HANDLE_SHARE_NO_BLOCK);
    return shares & (shares - 1) ? MQRC_OPTIONS_ERROR : MQRC_NONE;
}

static const MQCD *channel_of(const MQCNO *options, const void *given) {
    if (options->ClientConnPtr != NULL) return options->ClientConnPtr;
    return options->ClientConnOffset != 0 ? (const MQCD *)((const char *)given + options->ClientConnOffset) : NULL;
}

/* Copies the URL of a channel table, as a string; empty where there is none. */
static void url_of(const MQCNO *options, const void *given, char *url, size_t room) {
    const char *text = options->CCDTUrlPtr;
    if (text == NULL && options->CCDTUrlOffset != 0) text = (const char *)given + options->CCDTUrlOffset;
    size_t length = options->CCDTUrlLength > 0 && (size_t)options->CCDTUrlLength < room ? (size_t)options->CCDTUrlLength : 0;
    if (text == NULL) length = 0;
    if (length > 0) memcpy(url, text, length);
    url[length] = '\0';
}

static struct connection *made(const char *asked, MQLONG share) {
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) return NULL;
    pthread_mutex_init(&connection->lock, NULL);
    connection->owner = pthread_self();
    connection->pid = getpid();
    connection->share = share;
    connection->link = -1;
    connection->unit = 1;
    strcpy(connection->asked, asked);
    return connection;
}

static struct result linked(struct connection *connection, const MQCNO *options, const void *given) {
    char path[256], expected[NAME_LENGTH + 1], url[1024];
    url_of(options, given, url, sizeof url);
    MQLONG reason = find_address(connection->asked, channel_of(options, given), url, path, sizeof path, expected);
    if (reason != MQRC_NONE) return failed(reason);
    connection->link = connect_unix(path, &reason);
    if (connection->link < 0) return failed(reason);
    const char *application = options->ApplName;
    size_t length = field_length(application, sizeof options->ApplName);
    if (length == 0) {
        application = program_invocation_short_name;
        length = strnlen(application, sizeof options->ApplName);
    }
    struct result result = greet(connection, application, length);
    if (result.comp_code != MQCC_FAILED && expected[0] != '\0' && strcmp(expected, connection->name) != 0)
        result = failed(MQRC_Q_MGR_NAME_ERROR);
    return result;
}

void MQCONNX(PMQCHAR QMgrName, PMQVOID ConnectOpts, PMQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason) {
    MQCNO options;
    struct result result = failed(read_options(ConnectOpts, &options));
    char asked[NAME_LENGTH + 1] = "";
    if (QMgrName != NULL) name_of_field(asked, QMgrName);
    if (Hconn == NULL) result.reason = MQRC_HCONN_ERROR;
    if (result.reason != MQRC_NONE) {
        if (Hconn != NULL) *Hconn = MQHC_UNUSABLE_HCONN;
        answer(result, CompCode, Reason);
        return;
    }
    MQLONG share = options.Options & (MQCNO_HANDLE_SHARE_BLOCK | MQCNO_HANDLE_SHARE_NO_BLOCK);
    if (share == 0) share = MQCNO_HANDLE_SHARE_NONE;
    MQHCONN before = share == MQCNO_HANDLE_SHARE_NONE ? connected_before(asked) : 0;
    *Hconn = before ? before : MQHC_UNUSABLE_HCONN;
    struct connection *connection = before ? NULL : made(asked, share);
    if (before)
        result = warned(MQRC_ALREADY_CONNECTED);
    else if (connection == NULL)
        result = failed(MQRC_STORAGE_NOT_AVAILABLE);
    else {
        result = linked(connection, &options, ConnectOpts);
        if (result.comp_code != MQCC_FAILED && !add(connection)) result = failed(MQRC_HANDLE_NOT_AVAILABLE);
        if (result.comp_code == MQCC_FAILED)
            freed(connection);
        else
            *Hconn = connection->hconn;
    }
    answer(result, CompCode, Reason);
}

void MQCONN(PMQCHAR QMgrName, PMQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason) {
    MQCONNX(QMgrName, NULL, Hconn, CompCode, Reason);
}

void MQDISC(PMQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason) {
    struct result result = failed(MQRC_HCONN_ERROR);
    if (Hconn == NULL) {
        answer(result, CompCode, Reason);
        return;
    }
    stop_consumption(*Hconn);
    struct connection *connection = enter(*Hconn, &result);
    if (connection != NULL) {
        struct reply reply;
        hear_puts(connection, 0);
        struct result of_unit = connection->unit_failed ? commit(connection) : (struct result){MQCC_OK, MQRC_NONE};
        begin_call(connection, "disconnect", 1);
        write_int(&connection->out, connection->in_unit ? connection->unit : 0);
        result = exchange(connection, &reply);
        if (result.comp_code == MQCC_OK && of_unit.reason) result = warned(of_unit.reason);
        connection->ended = 1;
        break_link(connection, MQRC_HCONN_ERROR);
        leave(connection);
        free_messages(*Hconn);
        *Hconn = MQHC_UNUSABLE_HCONN;
    }
    answer(result, CompCode, Reason);
}
