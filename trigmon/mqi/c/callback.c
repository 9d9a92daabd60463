/* The library's own thread: it gets the messages of a connection and calls the program with each. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "callback.h"
#include "options.h"

#define WAIT_MS 100          /* how long one look for a message may wait: MQCTL is heard in between */
#define LONGEST_MESSAGE (104857600)

int64_t monotonic_ms(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000LL + at.tv_nsec / 1000000;
}

struct consumption *consumption_of(struct connection *c) {
    if (consumption_now(c) != NULL) return c->consumption;
    struct consumption *made = calloc(1, sizeof *made);
    if (made == NULL) return NULL;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    __atomic_store_n(&c->consumption, made, __ATOMIC_RELEASE);
    return made;
}

int is_consumer_thread(const struct connection *c) {
    const struct consumption *all = consumption_now(c);
    if (all == NULL || !__atomic_load_n(&all->is_running, __ATOMIC_ACQUIRE)) return 0;
    return pthread_equal(__atomic_load_n(&all->thread, __ATOMIC_ACQUIRE), pthread_self());
}

int consumers_hold(const struct connection *c) {
    const struct consumption *all = consumption_now(c);
    if (all == NULL || !__atomic_load_n(&all->is_running, __ATOMIC_ACQUIRE)) return 0;
    return !__atomic_load_n(&all->is_idle, __ATOMIC_ACQUIRE) || __atomic_load_n(&all->wants_stop, __ATOMIC_ACQUIRE);
}

MQLONG consumer_busy(const struct connection *c) {
    return consumers_hold(c) && !is_consumer_thread(c) ? MQRC_HCONN_ASYNC_ACTIVE : MQRC_NONE;
}

void call_program(struct connection *c, const MQCBD *cbd, MQLONG call_type, MQHOBJ hobj, struct result result,
                         MQMD *md, MQGMO *gmo, void *buffer, MQLONG length, MQLONG whole) {
    MQCBC context = {.StrucId = {'C', 'B', 'C', ' '}, .Version = 2};
    context.CallType = call_type;
    context.Hobj = hobj;
    context.CallbackArea = cbd->CallbackArea;
    context.ConnectionArea = c->consumption ? c->consumption->area : NULL;
    context.CompCode = result.comp_code;
    context.Reason = result.reason;
    context.DataLength = whole;
    context.BufferLength = length;
    MQCB_FUNCTION *function;
    memcpy(&function, &cbd->CallbackFunction, sizeof function);
    if (function != NULL) function(c->hconn, md, gmo, buffer, &context);
}

/* Gets a message for a consumer into the buffer, which grows where the consumer takes longer ones. */
static struct result fetch(struct connection *c, struct object *object, MQMD *md, MQGMO *gmo, MQLONG most, MQLONG *length) {
    struct consumption *all = c->consumption;
    MQLONG room = all->room < most ? all->room : most;
    *md = object->consumer->md;
    struct result result = get_message(c, object, md, gmo, room, all->buffer, length);
    if (result.reason != MQRC_TRUNCATED_MSG_FAILED || *length <= room || room == most) return result;
    MQLONG wanted = *length < most ? *length : most;
    void *buffer = realloc(all->buffer, (size_t)wanted);
    if (buffer == NULL) return result;
    all->buffer = buffer;
    all->room = wanted;
    *md = object->consumer->md;
    return get_message(c, object, md, gmo, wanted, all->buffer, length);
}

/* Notes how a look for a message ended. Returns whether the program is to be called: for a message, once for none in the
   consumer's interval, and for any other failure, which suspends the consumer. */
static int is_to_be_told(struct consumer *one, struct result result) {
    int64_t now = monotonic_ms();
    if (result.comp_code != MQCC_FAILED) {
        one->has_told_none = 0;
        one->waits_since_ms = now;
        return 1;
    }
    if (result.reason != MQRC_NO_MSG_AVAILABLE) {
        one->suspended = 1;
        return 1;
    }
    int64_t interval = one->gmo.Options & MQGMO_WAIT ? one->gmo.WaitInterval : 0;
    if (one->has_told_none || interval < 0 || now - one->waits_since_ms < interval) return 0;
    one->has_told_none = 1;
    return 1;
}

/* Gets a message for one consumer. Returns 1 when there was one, 0 when there was none, -1 at the connection's end. */
static int consume(struct connection *c, MQHOBJ hobj, int wait_ms) {
    struct result result;
    if (enter(c->hconn, &result) == NULL) return -1;
    struct object *object = find_object(c, hobj);
    if (object == NULL || object->consumer == NULL || object->consumer->suspended) {
        leave(c);
        return 0;
    }
    MQCBD cbd = object->consumer->cbd;
    MQMD md;
    MQGMO gmo = object->consumer->gmo;
    gmo.Options = (gmo.Options & ~MQGMO_WAIT) | (wait_ms > 0 ? MQGMO_WAIT : 0);
    gmo.WaitInterval = wait_ms;
    MQLONG length = 0, most = cbd.MaxMsgLength >= 0 ? cbd.MaxMsgLength : LONGEST_MESSAGE;
    result = fetch(c, object, &md, &gmo, most, &length);
    void *buffer = c->consumption->buffer;
    MQLONG room = c->consumption->room < most ? c->consumption->room : most;
    int is_told = is_to_be_told(object->consumer, result);
    leave(c);
    if (result.comp_code == MQCC_FAILED) {
        if (is_told) call_program(c, &cbd, MQCBCT_EVENT_CALL, hobj, result, NULL, NULL, NULL, 0, 0);
        return c->broken ? -1 : 0;
    }
    int is_left = gmo.Options & (MQGMO_BROWSE_FIRST | MQGMO_BROWSE_NEXT | MQGMO_BROWSE_MSG_UNDER_CURSOR);
    is_left = is_left || result.reason == MQRC_TRUNCATED_MSG_FAILED;
    call_program(c, &cbd, is_left ? MQCBCT_MSG_NOT_REMOVED : MQCBCT_MSG_REMOVED, hobj, result, &md, &gmo, buffer,
                 length < room ? length : room, length);
    return 1;
}

/* Lists the objects with a consumer. */
static int consumers(struct connection *c, MQHOBJ *hobjs, int most) {
    struct result result;
    int count = 0;
    if (enter(c->hconn, &result) == NULL) return -1;
    for (struct object *each = c->objects; each != NULL && count < most; each = each->next)
        if (each->consumer != NULL && !each->consumer->suspended) hobjs[count++] = each->hobj;
    leave(c);
    return count;
}

/* Waits while the connection is suspended. Returns whether the thread is to end. */
static int is_to_end(struct consumption *all) {
    pthread_mutex_lock(&all->lock);
    while (all->is_suspended && !all->wants_stop) {
        __atomic_store_n(&all->is_idle, 1, __ATOMIC_RELEASE);
        pthread_cond_broadcast(&all->changed);
        pthread_cond_wait(&all->changed, &all->lock);
    }
    __atomic_store_n(&all->is_idle, 0, __ATOMIC_RELEASE);
    int ends = all->wants_stop;
    pthread_mutex_unlock(&all->lock);
    return ends;
}

static void call_all(struct connection *c, MQLONG call_type, MQLONG option) {
    MQHOBJ hobjs[256];
    int count = consumers(c, hobjs, 256);
    for (int i = 0; i < count; i++) {
        struct result result;
        MQCBD cbd = {0};
        if (enter(c->hconn, &result) == NULL) return;
        struct object *object = find_object(c, hobjs[i]);
        if (object != NULL && object->consumer != NULL) cbd = object->consumer->cbd;
        leave(c);
        if (cbd.Options & option) call_program(c, &cbd, call_type, hobjs[i], (struct result){0, 0}, NULL, NULL, NULL, 0, 0);
    }
}

/* Returns whether a callback has stopped or suspended the consumption: then no other one follows it. */
static int is_held(const struct consumption *all) {
    return __atomic_load_n(&all->wants_stop, __ATOMIC_ACQUIRE) || __atomic_load_n(&all->is_suspended, __ATOMIC_ACQUIRE);
}

void *run_consumers(void *given) {
    struct connection *c = given;
    struct consumption *all = c->consumption;
    MQHOBJ hobjs[256];
    __atomic_store_n(&all->thread, pthread_self(), __ATOMIC_RELEASE);
    call_all(c, MQCBCT_START_CALL, MQCBDO_START_CALL);
    while (!is_to_end(all)) {
        int count = consumers(c, hobjs, 256), served = 0, ended = count < 0;
        for (int i = 0; i < count && !ended && !is_held(all); i++) {
            int got = consume(c, hobjs[i], 0);
            served += got > 0;
            ended = got < 0;
        }
        if (is_held(all)) continue;
        if (!ended && !served && count > 0) ended = consume(c, hobjs[0], count == 1 ? WAIT_MS : WAIT_MS / count + 1) < 0;
        if (!ended && !served && count == 0) {
            struct timespec pause = {0, WAIT_MS * 1000000L};
            nanosleep(&pause, NULL);
        }
        if (ended) {
            struct result broken = failed(c->broken ? c->broken : MQRC_CONNECTION_BROKEN);
            if (all->has_events) call_program(c, &all->events, MQCBCT_EVENT_CALL, MQHO_NONE, broken, NULL, NULL, NULL, 0, 0);
            break;
        }
    }
    call_all(c, MQCBCT_STOP_CALL, MQCBDO_STOP_CALL);
    pthread_mutex_lock(&all->lock);
    free(all->buffer);
    all->buffer = NULL;
    __atomic_store_n(&all->is_running, 0, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    give_back(c);
    return NULL;
}
