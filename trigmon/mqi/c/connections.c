/* Connections by their handles, and who may use them.

   A handle is the place in a table with a count of how often the place was used, so an old one is not mistaken for a new
   one. A connection is freed when the last thread has left it. */
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

static int has_ended(const struct connection *connection) {
    return __atomic_load_n(&connection->ended, __ATOMIC_ACQUIRE);
}

/* Returns the connection of a handle with its table locked, or NULL. */
static struct connection *looked_up(MQHCONN hconn) {
    if (hconn <= 0) return NULL;
    struct connection *found = table[hconn & (MOST_CONNECTIONS - 1)];
    return found != NULL && found->hconn == hconn && !has_ended(found) && found->pid == getpid() ? found : NULL;
}

/* Frees a connection that is not in the table, or that nobody uses any more. */
void free_connection(struct connection *connection) {
    if (connection->link >= 0) close(connection->link);
    end_tls(connection);
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
    if (--connection->users == 0 && has_ended(connection)) {
        table[connection->hconn & (MOST_CONNECTIONS - 1)] = NULL;
        free_connection(connection);
    }
}

/* Returns the reason why this thread has no business with a connection at all: its handle is of another thread alone, or
   another thread is about to end it. */
static MQLONG is_others(const struct connection *connection) {
    if (is_consumer_thread(connection)) return MQRC_NONE;
    int is_owner = pthread_equal(connection->owner, pthread_self());
    if (connection->share == MQCNO_HANDLE_SHARE_NONE && !is_owner) return MQRC_HCONN_ERROR;
    return __atomic_load_n(&connection->is_closing, __ATOMIC_ACQUIRE) ? MQRC_HCONN_ERROR : MQRC_NONE;
}

/* Takes the connection's lock as its handle is shared: waits for the call that is in progress, or returns 2219. The
   library's own thread always waits: a call of the program's that came first is a short one. */
MQLONG take_turn(struct connection *connection) {
    if (connection->share != MQCNO_HANDLE_SHARE_NO_BLOCK || is_consumer_thread(connection))
        pthread_mutex_lock(&connection->lock);
    else if (pthread_mutex_trylock(&connection->lock) != 0)
        return MQRC_CALL_IN_PROGRESS;
    if (!has_ended(connection)) return MQRC_NONE;
    pthread_mutex_unlock(&connection->lock);
    return MQRC_HCONN_ERROR;
}

/* Returns the connection of a handle, used but not locked, or NULL with the reason. */
struct connection *borrow(MQHCONN hconn, MQLONG *reason) {
    pthread_mutex_lock(&table_lock);
    struct connection *connection = looked_up(hconn);
    *reason = connection == NULL ? MQRC_HCONN_ERROR : is_others(connection);
    if (*reason == MQRC_NONE) connection->users++;
    pthread_mutex_unlock(&table_lock);
    return *reason == MQRC_NONE ? connection : NULL;
}

/* Uses a connection once more, for the library's own thread. */
void use_again(struct connection *connection) {
    pthread_mutex_lock(&table_lock);
    connection->users++;
    pthread_mutex_unlock(&table_lock);
}

void give_back(struct connection *connection) {
    pthread_mutex_lock(&table_lock);
    drop_use(connection);
    pthread_mutex_unlock(&table_lock);
}

/* Returns the connection of a handle for one call of this thread, locked; or NULL with the reason. */
struct connection *enter(MQHCONN hconn, struct result *result) {
    MQLONG reason;
    struct connection *connection = borrow(hconn, &reason);
    if (connection != NULL) {
        reason = consumer_busy(connection);
        if (reason == MQRC_NONE) reason = take_turn(connection);
        if (reason == MQRC_NONE) {
            /* While it waited for its turn, another thread may have started the consumers, or begun to end it. */
            reason = consumer_busy(connection);
            if (reason == MQRC_NONE) reason = is_others(connection);
            if (reason != MQRC_NONE) pthread_mutex_unlock(&connection->lock);
        }
        if (reason != MQRC_NONE) give_back(connection);
    }
    *result = (struct result){reason ? MQCC_FAILED : MQCC_OK, reason};
    return reason == MQRC_NONE ? connection : NULL;
}

void leave(struct connection *connection) {
    pthread_mutex_unlock(&connection->lock);
    give_back(connection);
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
MQHCONN connected_before(const char *name) {
    MQHCONN found = 0;
    pthread_mutex_lock(&table_lock);
    for (int place = 0; place < MOST_CONNECTIONS && !found; place++) {
        struct connection *each = table[place];
        if (each == NULL || has_ended(each) || each->pid != getpid() || each->share != MQCNO_HANDLE_SHARE_NONE) continue;
        if (pthread_equal(each->owner, pthread_self()) && !each->broken && strcmp(each->asked, name) == 0)
            found = each->hconn;
    }
    pthread_mutex_unlock(&table_lock);
    return found;
}

static void before_fork(void) {
    pthread_mutex_lock(&table_lock);
    lock_messages();
}

static void in_parent(void) {
    release_message();
    pthread_mutex_unlock(&table_lock);
}

/* Closes the links in a forked child: else a parent that is killed would not be seen to be gone while the child lives. */
static void in_child(void) {
    for (int place = 0; place < MOST_CONNECTIONS; place++) {
        if (table[place] == NULL || table[place]->link < 0) continue;
        close(table[place]->link);
        table[place]->link = -1;
    }
    in_parent();
}

static void register_forks(void) {
    pthread_atfork(before_fork, in_parent, in_child);
}

/* Sees to forks from here on: a child must not find a lock that a thread held which it does not have. */
void watch_forks(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_forks);
}

/* Gives a connection its handle. Returns 0 where there is no place. */
int add_connection(struct connection *connection) {
    watch_forks();
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

/* Makes a connection of this thread that is not linked yet, or returns NULL. */
struct connection *new_connection(const char *asked, MQLONG share) {
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
