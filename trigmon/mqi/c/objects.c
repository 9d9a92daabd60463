/* MQOPEN and MQCLOSE. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "callback.h"
#include "internal.h"
#include "options.h"

/* Copies as much of an object descriptor as its version has. Returns the reason of one that is none. */
MQLONG read_od(const void *given, MQOD *od) {
    static const size_t lengths[] = {
        0, offsetof(MQOD, RecsPresent), offsetof(MQOD, AlternateSecurityId), offsetof(MQOD, ObjectString), sizeof(MQOD),
    };
    if (!is_struct(given, "OD  ", 4)) return MQRC_OD_ERROR;
    MQLONG version;
    memcpy(&version, (const char *)given + 4, sizeof version);
    memset(od, 0, sizeof *od);
    memcpy(od, given, lengths[version]);
    return od->RecsPresent != 0 ? MQRC_RECS_PRESENT_ERROR : MQRC_NONE; /* no distribution lists */
}

/* Returns 2087 for an object of another queue manager: a remote queue's definition leads there. */
MQLONG check_q_mgr(const struct connection *connection, const MQOD *od) {
    char q_mgr[NAME_LENGTH + 1];
    name_of_field(q_mgr, od->ObjectQMgrName);
    return q_mgr[0] == '\0' || strcmp(q_mgr, connection->name) == 0 ? MQRC_NONE : MQRC_UNKNOWN_REMOTE_Q_MGR;
}

static const char *type_name(MQLONG type) {
    switch (type) {
        case MQOT_Q: return "queue";
        case MQOT_NAMELIST: return "NAMELIST";
        case MQOT_PROCESS: return "PROCESS";
        case MQOT_Q_MGR: return "QMGR";
        default: return NULL;
    }
}

/* Returns whether opening a model queue made this queue: its name is what DynamicQName asks for. */
static int is_made(const MQOD *od, const char *q_name) {
    size_t length = field_length(od->DynamicQName, NAME_LENGTH);
    if (length == 0 || od->ObjectType != MQOT_Q) return 0;
    if (od->DynamicQName[length - 1] != '*')
        return strlen(q_name) == length && memcmp(q_name, od->DynamicQName, length) == 0;
    return strlen(q_name) == length - 1 + 16 && memcmp(q_name, od->DynamicQName, length - 1) == 0;
}

/* Writes into the program's descriptor what an open has found out. */
static void tell(MQOD *given, const MQOD *od, const struct connection *connection, const char *q_name) {
    size_t length = strlen(q_name), of_manager = strlen(connection->name);
    char asked[NAME_LENGTH + 1];
    name_of_field(asked, od->ObjectName);
    if (strcmp(asked, q_name) != 0 && is_made(od, q_name))
        fill_field(given->ObjectName, NAME_LENGTH, (const uint8_t *)q_name, length);
    if (od->Version >= 3) {
        fill_field(given->ResolvedQName, NAME_LENGTH, (const uint8_t *)q_name, od->ObjectType == MQOT_Q ? length : 0);
        fill_field(given->ResolvedQMgrName, NAME_LENGTH, (const uint8_t *)connection->name, of_manager);
    }
    if (od->Version >= 4) given->ResolvedType = od->ObjectType;
}

static struct result opened(struct connection *connection, MQOD *given, const MQOD *od, struct reply *reply, PMQHOBJ hobj) {
    if (strcmp(reply->tag, "opened") != 0 || reply->fields < 1) {
        break_link(connection, MQRC_CONNECTION_BROKEN);
        return failed(MQRC_CONNECTION_BROKEN);
    }
    struct object *object = calloc(1, sizeof *object);
    if (object == NULL) return failed(MQRC_STORAGE_NOT_AVAILABLE);
    object->number = read_int(&reply->reader);
    struct slice name = {NULL, 0};
    if (reply->fields > 1) name = read_text(&reply->reader);
    if (reply->reader.failed || name.length > NAME_LENGTH) name.length = 0;
    if (name.length > 0)
        memcpy(object->q_name, name.bytes, name.length);
    else
        name_of_field(object->q_name, od->ObjectName);
    object->type = od->ObjectType;
    connection->last_hobj = connection->last_hobj == INT32_MAX ? 1 : connection->last_hobj + 1;
    object->hobj = connection->last_hobj;
    object->next = connection->objects;
    connection->objects = object;
    *hobj = object->hobj;
    tell(given, od, connection, object->q_name);
    return warned(reply->warning);
}

static struct result open_object(struct connection *connection, MQOD *given, MQLONG options, PMQHOBJ hobj) {
    MQOD od;
    MQLONG reason = read_od(given, &od);
    if (reason == MQRC_NONE) reason = check_q_mgr(connection, &od);
    const char *type = reason == MQRC_NONE ? type_name(od.ObjectType) : NULL;
    if (reason == MQRC_NONE && type == NULL) reason = MQRC_OBJECT_TYPE_ERROR;
    if (reason != MQRC_NONE) return failed(reason);
    struct reply reply;
    struct writer *out = &connection->out;
    begin_call(connection, "open", 4);
    /* The queue manager's own name is said by leaving it out. */
    write_field(out, od.ObjectName, od.ObjectType == MQOT_Q_MGR ? 0 : NAME_LENGTH);
    write_int(out, options & ~OPEN_WITHOUT_EFFECT);
    write_text(out, type, strlen(type));
    write_field(out, od.DynamicQName, NAME_LENGTH);
    struct result result = exchange(connection, &reply);
    return result.comp_code == MQCC_FAILED ? result : opened(connection, given, &od, &reply, hobj);
}

void MQOPEN(MQHCONN Hconn, PMQVOID ObjDesc, MQLONG Options, PMQHOBJ Hobj, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (Hobj != NULL) *Hobj = MQHO_UNUSABLE_HOBJ;
    if (connection != NULL) {
        result = Hobj == NULL ? failed(MQRC_HOBJ_ERROR) : open_object(connection, ObjDesc, Options, Hobj);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}

/* Takes an object out of its connection's list and frees it. */
static void forget(struct connection *connection, struct object *object) {
    struct object **at = &connection->objects;
    while (*at != NULL && *at != object) at = &(*at)->next;
    if (*at != NULL) *at = object->next;
    free(object->consumer);
    free(object);
}

void MQCLOSE(MQHCONN Hconn, PMQHOBJ Hobj, MQLONG Options, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        struct object *object = Hobj != NULL ? find_object(connection, *Hobj) : NULL;
        result = failed(MQRC_HOBJ_ERROR);
        if (object != NULL) {
            struct reply reply;
            hear_puts(connection, 0);
            begin_call(connection, "close", 2);
            write_int(&connection->out, object->number);
            write_int(&connection->out, Options & ~MQCO_QUIESCE);
            result = exchange(connection, &reply);
            if (result.comp_code != MQCC_FAILED || connection->broken) {
                forget(connection, object);
                *Hobj = MQHO_UNUSABLE_HOBJ;
            }
        }
        leave(connection);
    }
    answer(result, CompCode, Reason);
}
