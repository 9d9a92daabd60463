/* MQCONN, MQCONNX and MQDISC. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"
#include "callback.h"
#include "properties.h"

#define GREETING_S 10

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

/* What a connection is made with. */
struct connecting {
    char expected[NAME_LENGTH + 1]; /* the queue manager that must answer, or empty */
    const char *application;
    size_t length;
    struct credentials credentials; /* of the MQCSP */
    struct places places;
};

/* Returns the reason for a host where nothing answers. */
static MQLONG nothing_there(const struct places *places) {
    return places->has_host ? MQRC_HOST_NOT_AVAILABLE : MQRC_Q_MGR_NOT_AVAILABLE;
}

/* Links by TLS. A user of the MQCSP comes in the place of the address's certificate, and of its user. */
static struct result by_tls(struct connection *connection, const struct connecting *with, const struct place *place) {
    struct credentials credentials = with->credentials;
    int is_by_address = credentials.user[0] == '\0';
    MQLONG reason = is_by_address ? read_password(place, &credentials) : MQRC_NONE;
    if (reason == MQRC_NONE) connection->link = connect_tcp(place);
    if (reason == MQRC_NONE && connection->link < 0) reason = nothing_there(&with->places);
    if (reason == MQRC_NONE) {
        be_patient(connection, GREETING_S);
        reason = begin_tls(connection, place, is_by_address);
    }
    struct result result = failed(reason);
    if (reason == MQRC_NONE)
        result = greet(connection, with->application, with->length, credentials.user, credentials.password);
    explicit_bzero(&credentials, sizeof credentials);
    return result;
}

static struct result by_socket(struct connection *connection, const struct connecting *with, const struct place *place) {
    MQLONG reason = MQRC_NONE;
    connection->link = connect_unix(place->path, &reason);
    if (connection->link < 0) return failed(reason);
    be_patient(connection, GREETING_S);
    return greet(connection, with->application, with->length, "", "");
}

/* Links to one place. Where that fails, the connection is as it was before. */
static struct result link_to(struct connection *connection, const struct connecting *with, const struct place *place) {
    struct result result = place->path[0] ? by_socket(connection, with, place) : by_tls(connection, with, place);
    if (result.comp_code != MQCC_FAILED) {
        int is_expected = with->expected[0] == '\0' || strcmp(with->expected, connection->name) == 0;
        int is_named = place->q_mgr_name[0] == '\0' || strcmp(place->q_mgr_name, connection->name) == 0;
        be_patient(connection, 0);
        if (is_expected && is_named) return result;
        result = failed(MQRC_Q_MGR_NAME_ERROR);
    }
    break_link(connection, result.reason);
    end_tls(connection);
    connection->broken = 0;
    connection->in_start = connection->in_end = 0;
    return result;
}

/* Tries the places in their order, behind those that pass by themselves: none is there, or it stops. */
static struct result linked(struct connection *connection, const MQCNO *options, const void *given) {
    struct connecting with = {.application = options->ApplName};
    char url[1024];
    url_of(options, given, url, sizeof url);
    with.length = field_length(with.application, sizeof options->ApplName);
    if (with.length == 0) {
        with.application = program_invocation_short_name;
        with.length = strnlen(with.application, sizeof options->ApplName);
    }
    MQLONG reason = read_csp(options, given, &with.credentials);
    if (reason == MQRC_NONE)
        reason = find_places(connection->asked, channel_of(options, given), url, &with.places, with.expected);
    struct result result = failed(reason ? reason : MQRC_Q_MGR_NAME_ERROR);
    for (int i = 0; reason == MQRC_NONE && i < with.places.count; i++) {
        result = link_to(connection, &with, &with.places.all[i]);
        if (result.comp_code != MQCC_FAILED) break;
        int passes = result.reason == nothing_there(&with.places) || result.reason == MQRC_Q_MGR_NOT_AVAILABLE;
        if (!passes && result.reason != MQRC_Q_MGR_STOPPING && result.reason != MQRC_CF_NOT_AVAILABLE) break;
    }
    explicit_bzero(&with.credentials, sizeof with.credentials);
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
    struct connection *connection = before ? NULL : new_connection(asked, share);
    if (before)
        result = warned(MQRC_ALREADY_CONNECTED);
    else if (connection == NULL)
        result = failed(MQRC_STORAGE_NOT_AVAILABLE);
    else {
        result = linked(connection, &options, ConnectOpts);
        if (result.comp_code != MQCC_FAILED && !add_connection(connection)) result = failed(MQRC_HANDLE_NOT_AVAILABLE);
        if (result.comp_code == MQCC_FAILED)
            free_connection(connection);
        else
            *Hconn = connection->hconn;
    }
    answer(result, CompCode, Reason);
}

void MQCONN(PMQCHAR QMgrName, PMQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason) {
    MQCONNX(QMgrName, NULL, Hconn, CompCode, Reason);
}

/* Ends a connection whose lock this thread has. */
static struct result disconnected(struct connection *connection) {
    struct reply reply;
    hear_puts(connection, 0);
    struct result of_unit = connection->unit_failed ? commit(connection) : (struct result){MQCC_OK, MQRC_NONE};
    begin_call(connection, "disconnect", 1);
    write_int(&connection->out, connection->in_unit ? connection->unit : 0);
    struct result result = exchange(connection, &reply);
    if (result.comp_code == MQCC_OK && of_unit.reason) result = warned(of_unit.reason);
    __atomic_store_n(&connection->ended, 1, __ATOMIC_RELEASE);
    break_link(connection, MQRC_HCONN_ERROR);
    return result;
}

/* Lets no other thread in any more. A call of one that is in progress comes first: it is waited for, or it refuses this one
   (2219). While consumers have the connection there is none. */
static MQLONG close_to_others(struct connection *connection) {
    int is_held = consumers_hold(connection);
    MQLONG reason = is_held ? MQRC_NONE : take_turn(connection);
    if (reason != MQRC_NONE) return reason;
    int before = __atomic_exchange_n(&connection->is_closing, 1, __ATOMIC_ACQ_REL);
    if (!is_held) pthread_mutex_unlock(&connection->lock);
    return before ? MQRC_HCONN_ERROR : MQRC_NONE;
}

void MQDISC(PMQHCONN Hconn, PMQLONG CompCode, PMQLONG Reason) {
    MQLONG reason = MQRC_HCONN_ERROR;
    struct connection *connection = Hconn != NULL ? borrow(*Hconn, &reason) : NULL;
    if (connection != NULL) {
        reason = close_to_others(connection);
        if (reason != MQRC_NONE) give_back(connection);
    }
    struct result result = failed(reason);
    if (reason == MQRC_NONE) {
        MQHCONN hconn = connection->hconn;
        stop_consumption(connection);
        pthread_mutex_lock(&connection->lock);
        result = disconnected(connection);
        leave(connection);
        free_messages(hconn);
        *Hconn = MQHC_UNUSABLE_HCONN;
    }
    answer(result, CompCode, Reason);
}
