/* MQCTL: starts, stops, suspends and resumes the consumers of a connection.

   While they run, the connection is theirs: other threads may stop, suspend and disconnect, and else get 2500. What begins
   that, or ends a suspension, is a call like any other: it waits for another thread's call, or gets 2219. */
#include <stdlib.h>
#include <string.h>

#include "callback.h"
#include "options.h"

#define FIRST_BUFFER 65536
#define BY_A_CALLBACK 2 /* a value of wants_stop: another callback may take it back */

static int is_running(const struct consumption *all) {
    return all != NULL && __atomic_load_n(&all->is_running, __ATOMIC_ACQUIRE);
}

static int has_consumers(const struct connection *c) {
    for (const struct object *each = c->objects; each != NULL; each = each->next)
        if (each->consumer != NULL && !each->consumer->suspended) return 1;
    return 0;
}

/* Starts the thread; the connection is locked. */
static MQLONG start_thread(struct connection *c, MQPTR area) {
    struct consumption *all = consumption_of(c);
    if (all == NULL) return MQRC_STORAGE_NOT_AVAILABLE;
    if (is_running(all)) return MQRC_OPERATION_NOT_ALLOWED; /* another thread was faster */
    if (!has_consumers(c) && !all->has_events) return MQRC_NO_CALLBACKS_ACTIVE;
    MQLONG reason = MQRC_NONE;
    pthread_mutex_lock(&all->lock);
    all->buffer = malloc(FIRST_BUFFER);
    all->room = all->buffer ? FIRST_BUFFER : 0;
    all->area = area;
    int *const flags[] = {&all->wants_stop, &all->is_suspended, &all->is_idle};
    for (int i = 0; i < 3; i++) __atomic_store_n(flags[i], 0, __ATOMIC_RELEASE);
    pthread_t none, made;
    memset(&none, 0, sizeof none); /* not that of one before, which another thread may have by now */
    __atomic_store_n(&all->thread, none, __ATOMIC_RELEASE);
    use_again(c);
    __atomic_store_n(&all->is_running, 1, __ATOMIC_RELEASE);
    if (pthread_create(&made, NULL, run_consumers, c) == 0)
        pthread_detach(made);
    else {
        __atomic_store_n(&all->is_running, 0, __ATOMIC_RELEASE);
        give_back(c);
        reason = MQRC_STORAGE_NOT_AVAILABLE;
    }
    pthread_mutex_unlock(&all->lock);
    return reason;
}

/* In a callback MQOP_START takes back the MQOP_STOP of one before it, and does nothing else. */
static MQLONG start_in_callback(struct consumption *all) {
    pthread_mutex_lock(&all->lock);
    if (all->wants_stop == BY_A_CALLBACK) __atomic_store_n(&all->wants_stop, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&all->lock);
    return MQRC_NONE;
}

static MQLONG start(struct connection *c, MQLONG operation, MQPTR area) {
    int waits = operation == MQOP_START_WAIT;
    if (is_consumer_thread(c)) return waits ? MQRC_ENVIRONMENT_ERROR : start_in_callback(consumption_now(c));
    if (consumers_hold(c) && !waits) return MQRC_HCONN_ASYNC_ACTIVE;
    if (is_running(consumption_now(c))) return MQRC_OPERATION_NOT_ALLOWED;
    MQLONG reason = take_turn(c);
    if (reason != MQRC_NONE) return reason;
    reason = start_thread(c, area);
    pthread_mutex_unlock(&c->lock);
    if (reason != MQRC_NONE || !waits) return reason;
    struct consumption *all = consumption_now(c);
    pthread_mutex_lock(&all->lock);
    while (all->is_running) pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
    return MQRC_NONE;
}

/* Suspends, and waits until no callback is under way, unless it is one that asks. */
static MQLONG suspend(struct connection *c) {
    struct consumption *all = consumption_now(c);
    if (!is_running(all)) return MQRC_OPERATION_NOT_ALLOWED;
    pthread_mutex_lock(&all->lock);
    int is_itself = is_consumer_thread(c);
    __atomic_store_n(&all->is_suspended, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&all->changed);
    /* Another thread may resume it, or end it, before it is idle. */
    while (!is_itself && all->is_running && all->is_suspended && !all->is_idle) pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
    return MQRC_NONE;
}

/* Gives the connection back to the consumers, behind a call of another thread. */
static MQLONG resume(struct connection *c) {
    struct consumption *all = consumption_now(c);
    if (!is_running(all)) return MQRC_OPERATION_NOT_ALLOWED;
    int is_free = !consumers_hold(c);
    MQLONG reason = is_free ? take_turn(c) : MQRC_NONE;
    if (reason != MQRC_NONE) return reason;
    pthread_mutex_lock(&all->lock);
    __atomic_store_n(&all->is_suspended, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&all->is_idle, 0, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
    if (is_free) pthread_mutex_unlock(&c->lock);
    return MQRC_NONE;
}

/* Asks the thread to end, and lets no other call in from here on. */
static void want_stop(struct connection *c) {
    struct consumption *all = consumption_now(c);
    pthread_mutex_lock(&all->lock);
    int is_itself = is_consumer_thread(c);
    if (all->wants_stop != 1) __atomic_store_n(&all->wants_stop, is_itself ? BY_A_CALLBACK : 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

/* Ends the thread and waits for its end, unless it is the thread itself that asks. */
void stop_consumption(struct connection *c) {
    struct consumption *all = consumption_now(c);
    if (!is_running(all)) return;
    want_stop(c);
    pthread_mutex_lock(&all->lock);
    int is_itself = is_consumer_thread(c);
    while (!is_itself && all->is_running) pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

static MQLONG stop(struct connection *c) {
    if (!is_running(consumption_now(c))) return MQRC_NONE;
    if (!consumers_hold(c)) {
        MQLONG reason = take_turn(c);
        if (reason != MQRC_NONE) return reason;
        want_stop(c);
        pthread_mutex_unlock(&c->lock);
    }
    stop_consumption(c);
    return MQRC_NONE;
}

static MQLONG control(struct connection *c, MQLONG operation, MQPTR area) {
    switch (operation) {
        case MQOP_START:
        case MQOP_START_WAIT: return start(c, operation, area);
        case MQOP_STOP: return stop(c);
        case MQOP_SUSPEND: return suspend(c);
        case MQOP_RESUME: return resume(c);
        default: return MQRC_OPERATION_ERROR;
    }
}

void MQCTL(MQHCONN Hconn, MQLONG Operation, PMQVOID ControlOpts, PMQLONG CompCode, PMQLONG Reason) {
    MQLONG reason;
    struct connection *c = borrow(Hconn, &reason);
    if (reason == MQRC_NONE && ControlOpts != NULL && !is_struct(ControlOpts, "CTLO", 1)) reason = MQRC_CTLO_ERROR;
    if (reason == MQRC_NONE) reason = control(c, Operation, ControlOpts ? ((MQCTLO *)ControlOpts)->ConnectionArea : NULL);
    if (c != NULL) give_back(c);
    answer((struct result){reason ? MQCC_FAILED : MQCC_OK, reason}, CompCode, Reason);
}
