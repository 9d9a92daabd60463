/* MQBEGIN, MQCMIT and MQBACK, and what is not here: MQSUB and MQSUBRQ. */
#include <stddef.h>

#include "internal.h"

static struct result end_unit(struct connection *connection, const char *call, int is_backout) {
    struct reply reply;
    begin_call(connection, call, 1);
    write_int(&connection->out, connection->unit);
    struct result result = exchange(connection, &reply);
    if (result.comp_code == MQCC_FAILED && result.reason != MQRC_BACKED_OUT) return result;
    /* A marked message is not backed out with its unit: it belongs to the next one. */
    connection->in_unit = is_backout && connection->marked;
    connection->marked = 0;
    connection->unit_failed = 0;
    connection->unit++;
    return result;
}

/* Commits; a unit of work with an asynchronous put that failed is backed out instead (2003). */
struct result commit(struct connection *connection) {
    hear_puts(connection, 0);
    if (!connection->unit_failed) return end_unit(connection, "commit", 0);
    struct result result = end_unit(connection, "backout", 1);
    return result.comp_code == MQCC_FAILED ? result : failed(MQRC_BACKED_OUT);
}

void MQCMIT(MQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        result = commit(connection);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}

void MQBACK(MQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        result = end_unit(connection, "backout", 1);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}

/* There are no other resource managers: the unit of work is the queue manager's own, as MQ's warning 2121 says. */
void MQBEGIN(MQHCONN Hconn, PMQVOID BeginOptions, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        result = warned(MQRC_NO_EXTERNAL_PARTICIPANTS);
        if (connection->in_unit) result = failed(2128); /* MQRC_UOW_IN_PROGRESS */
        if (BeginOptions != NULL && !is_struct(BeginOptions, "BO  ", 1)) result = failed(MQRC_BO_ERROR);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}

/* trigmon has no topics: 2298. */
void MQSUB(MQHCONN Hconn, PMQVOID SubDesc, PMQHOBJ Hobj, PMQHOBJ Hsub, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    (void)SubDesc;
    (void)Hobj;
    struct connection *connection = enter(Hconn, &result);
    if (Hsub != NULL) *Hsub = MQHO_UNUSABLE_HOBJ;
    if (connection != NULL) {
        result = failed(MQRC_FUNCTION_NOT_SUPPORTED);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}

void MQSUBRQ(MQHCONN Hconn, MQHOBJ Hsub, MQLONG Action, PMQVOID SubRqOpts, PMQLONG CompCode, PMQLONG Reason) {
    (void)Hsub;
    (void)Action;
    MQSUB(Hconn, SubRqOpts, NULL, NULL, CompCode, Reason);
}
