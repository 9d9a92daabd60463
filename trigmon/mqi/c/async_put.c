/* Asynchronous puts: sent, and answered when something else is asked. MQSTAT tells what has become of them. */
#include <stddef.h>
#include <string.h>

#include "internal.h"

/* Notes how a put ended. The first failure is kept, before that the first warning. */
static void note_put(struct connection *connection, struct result result, const char *q_name, int is_unit) {
    struct put_status *status = &connection->status;
    if (is_unit && result.comp_code == MQCC_FAILED) connection->unit_failed = 1;
    if (result.comp_code == MQCC_OK) {
        status->successes++;
        return;
    }
    if (result.comp_code == MQCC_WARNING)
        status->warnings++;
    else
        status->failures++;
    if (result.comp_code <= status->comp_code) return;
    status->comp_code = result.comp_code;
    status->reason = result.reason;
    strcpy(status->q_name, q_name);
}

/* Reads the replies to asynchronous puts, but for the last ``all_but`` of them. */
void hear_puts(struct connection *connection, int all_but) {
    while (connection->unanswered_count > all_but) {
        struct reply reply;
        char q_name[NAME_LENGTH + 1];
        strcpy(q_name, connection->unanswered[0].q_name);
        int is_unit = connection->unanswered[0].is_unit;
        connection->unanswered_count--;
        memmove(&connection->unanswered[0], &connection->unanswered[1],
                (size_t)connection->unanswered_count * sizeof connection->unanswered[0]);
        note_put(connection, receive_reply(connection, &reply), q_name, is_unit);
    }
}

/* Notes a put that was sent and is not answered yet; ``q_name`` has at most 48 bytes. */
void defer_put(struct connection *connection, const char *q_name, int is_unit) {
    hear_puts(connection, MOST_ASYNC_PUTS - 1);
    struct unanswered_put *put = &connection->unanswered[connection->unanswered_count++];
    strcpy(put->q_name, q_name);
    put->is_unit = is_unit;
}

static void fill_status(MQSTS *given, const struct put_status *status, const char *q_mgr) {
    given->CompCode = status->comp_code;
    given->Reason = status->reason;
    given->PutSuccessCount = status->successes;
    given->PutWarningCount = status->warnings;
    given->PutFailureCount = status->failures;
    given->ObjectType = MQOT_Q;
    int has_object = status->comp_code != MQCC_OK;
    fill_field(given->ObjectName, NAME_LENGTH, (const uint8_t *)status->q_name, strlen(status->q_name));
    fill_field(given->ObjectQMgrName, NAME_LENGTH, (const uint8_t *)q_mgr, has_object ? strlen(q_mgr) : 0);
    fill_field(given->ResolvedObjectName, NAME_LENGTH, (const uint8_t *)status->q_name, strlen(status->q_name));
    fill_field(given->ResolvedQMgrName, NAME_LENGTH, (const uint8_t *)q_mgr, has_object ? strlen(q_mgr) : 0);
    if (given->Version < 2) return;
    given->ObjectString.VSLength = 0;
    given->SubName.VSLength = 0;
    given->OpenOptions = 0;
    given->SubOptions = 0;
}

void MQSTAT(MQHCONN Hconn, MQLONG Type, PMQVOID Status, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        if (!is_struct(Status, "STAT", 2))
            result = failed(MQRC_STS_ERROR);
        else if (Type == MQSTAT_TYPE_ASYNC_ERROR) {
            hear_puts(connection, 0);
            fill_status(Status, &connection->status, connection->name);
            memset(&connection->status, 0, sizeof connection->status);
        } else if (Type == MQSTAT_TYPE_RECONNECTION || Type == MQSTAT_TYPE_RECONNECTION_ERROR) {
            struct put_status none = {0}; /* connections are not made again by themselves */
            fill_status(Status, &none, connection->name);
        } else
            result = failed(MQRC_STAT_TYPE_ERROR);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}
