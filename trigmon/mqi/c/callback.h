/* What MQCB and MQCTL have to do with the other calls of a connection. */
#ifndef TRIGMON_CALLBACK_H
#define TRIGMON_CALLBACK_H

#include "internal.h"

/* What MQCB registered for an object. */
struct consumer {
    MQCBD cbd;
    MQMD md;
    MQGMO gmo;
    int suspended;
    int has_told_none;     /* of 2033, until a message comes */
    int64_t waits_since_ms;
};

/* What MQCTL has started on a connection. */
struct consumption {
    pthread_t thread; /* set by itself, when it has begun */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int is_running; /* the thread is there */
    int wants_stop; /* 1 by the program, 2 by a callback */
    int is_suspended;
    int is_idle; /* suspended, and no callback is under way */
    MQPTR area;
    MQCBD events; /* the event handler, where one is registered */
    int has_events;
    void *buffer;
    MQLONG room;
};

/* What MQCTL and MQCB have made, or NULL; threads look at it without the connection's lock. */
static inline struct consumption *consumption_now(const struct connection *c) {
    return __atomic_load_n(&c->consumption, __ATOMIC_ACQUIRE);
}

int64_t monotonic_ms(void);
struct consumption *consumption_of(struct connection *c);
void call_program(struct connection *c, const MQCBD *cbd, MQLONG call_type, MQHOBJ hobj, struct result result, MQMD *md,
                  MQGMO *gmo, void *buffer, MQLONG length, MQLONG whole);
int consumers_hold(const struct connection *c);    /* they run, and are not idle in a suspension */
MQLONG consumer_busy(const struct connection *c); /* 2500 while they do and another thread calls */
int is_consumer_thread(const struct connection *c);
void *run_consumers(void *connection);
void stop_consumption(struct connection *c);

#endif
