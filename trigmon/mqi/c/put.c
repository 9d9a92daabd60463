/* MQPUT and MQPUT1. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "options.h"
#include "properties.h"

/* What a put is made from, read and checked. */
struct putting {
    MQMD md;
    MQPMO pmo;
    struct writer with_header; /* an MQRFH2 and the data behind it, where the message has properties */
    const uint8_t *data;
    size_t length;
    MQLONG encoding;
    MQLONG ccsid;
    char format[8];
};

MQLONG read_md(const void *given, MQMD *md) {
    if (!is_struct(given, "MD  ", 2)) return MQRC_MD_ERROR;
    MQLONG version;
    memcpy(&version, (const char *)given + 4, sizeof version);
    memset(md, 0, sizeof *md);
    memcpy(md, given, version == 1 ? offsetof(MQMD, GroupId) : sizeof *md);
    if (version == 1) {
        md->MsgSeqNumber = 1;
        md->OriginalLength = -1;
    }
    return MQRC_NONE;
}

/* Writes back as much of a descriptor as the program's version has. */
void write_md(void *given, const MQMD *md) {
    memcpy((char *)given + 8, (const char *)md + 8, (md->Version == 1 ? offsetof(MQMD, GroupId) : sizeof *md) - 8);
}

static MQLONG read_pmo(const void *given, MQPMO *pmo) {
    static const size_t lengths[] = {0, offsetof(MQPMO, RecsPresent), offsetof(MQPMO, OriginalMsgHandle), sizeof(MQPMO)};
    if (!is_struct(given, "PMO ", 3)) return MQRC_PMO_ERROR;
    MQLONG version;
    memcpy(&version, (const char *)given + 4, sizeof version);
    memset(pmo, 0, sizeof *pmo);
    memcpy(pmo, given, lengths[version]);
    return pmo->RecsPresent != 0 ? MQRC_RECS_PRESENT_ERROR : MQRC_NONE;
}

/* Collects the properties of the two handles that a put may name; those of the new message count. */
static MQLONG gathered(const MQPMO *pmo, struct properties *all) {
    MQHMSG handles[] = {pmo->OriginalMsgHandle, pmo->NewMsgHandle};
    for (int i = 0; i < 2; i++) {
        if (handles[i] == MQHM_NONE || handles[i] == MQHM_UNUSABLE_HMSG) continue;
        struct properties *of_one = message_of(handles[i]);
        if (of_one == NULL) return MQRC_HMSG_ERROR;
        int done = copy_properties(all, of_one);
        release_message();
        if (!done) return MQRC_STORAGE_NOT_AVAILABLE;
    }
    return MQRC_NONE;
}

/* Puts an MQRFH2 with the message's properties before its data, where it has any. */
static MQLONG add_header(struct putting *put) {
    struct properties all = {0};
    MQLONG reason = gathered(&put->pmo, &all);
    if (reason == MQRC_NONE && all.first != NULL) {
        struct writer *w = &put->with_header;
        if (!write_rfh2(w, &all, put->encoding, put->ccsid, put->format) || !writer_reserve(w, put->length))
            reason = MQRC_STORAGE_NOT_AVAILABLE;
        else {
            if (put->length > 0) memcpy(w->bytes + w->length, put->data, put->length);
            put->data = w->bytes;
            put->length += w->length;
            put->encoding = MQENC_NATIVE;
            put->ccsid = TRIGMON_CCSID;
            memcpy(put->format, "MQHRF2  ", 8);
        }
    }
    clear_properties(&all);
    return reason;
}

static MQLONG read_put(const struct connection *connection, struct putting *put, const void *md, const void *pmo,
                       MQLONG length, const void *buffer) {
    memset(put, 0, sizeof *put);
    MQLONG reason = read_md(md, &put->md);
    if (reason == MQRC_NONE) reason = read_pmo(pmo, &put->pmo);
    if (reason == MQRC_NONE && length < 0) reason = MQRC_BUFFER_LENGTH_ERROR;
    if (reason == MQRC_NONE && length > 0 && buffer == NULL) reason = MQRC_BUFFER_ERROR;
    /* Before any of it is copied. */
    if (reason == MQRC_NONE && (size_t)length > connection->frame_limit) reason = MQRC_MSG_TOO_BIG_FOR_Q_MGR;
    if (reason != MQRC_NONE) return reason;
    if (put->pmo.Options & PUT_MD_FOR_OUTPUT_ONLY) {
        memset(put->md.MsgId, 0, 24);
        memset(put->md.CorrelId, 0, 24);
    }
    /* The queue manager's own set of characters has a number from here on. */
    if (put->md.CodedCharSetId == MQCCSI_Q_MGR || put->md.CodedCharSetId == MQCCSI_APPL) put->md.CodedCharSetId = TRIGMON_CCSID;
    put->data = buffer;
    put->length = (size_t)length;
    put->encoding = put->md.Encoding;
    put->ccsid = put->md.CodedCharSetId;
    memcpy(put->format, put->md.Format, 8);
    return put->pmo.Version >= 3 ? add_header(put) : MQRC_NONE;
}

static void write_put(struct connection *connection, const struct putting *put, const struct object *object,
                      const char *q_name, int64_t context) {
    struct writer *out = &connection->out;
    int is_unit = put->pmo.Options & MQPMO_SYNCPOINT;
    begin_call(connection, "put", 7);
    write_int(out, object ? object->number : 0);
    write_text(out, q_name, object ? 0 : strlen(q_name));
    write_descriptor(out, &put->md, put->ccsid, put->format, put->encoding);
    write_binary(out, put->data, put->length);
    write_int(out, put->pmo.Options & ~PUT_WITHOUT_EFFECT);
    write_int(out, is_unit ? connection->unit : 0);
    write_int(out, context);
    if (is_unit) connection->in_unit = 1;
}

static void read_id(struct reader *r, MQBYTE *id) {
    struct slice bytes = read_binary(r);
    if (bytes.length == 24) memcpy(id, bytes.bytes, 24);
}

/* Reads ``was_put`` into the descriptor. */
static void read_was_put(struct reply *reply, MQMD *md) {
    struct reader *r = &reply->reader;
    if (strcmp(reply->tag, "was_put") != 0 || reply->fields < 5) return;
    read_id(r, md->MsgId);
    read_id(r, md->CorrelId);
    md->Priority = (MQLONG)read_int(r);
    md->Persistence = (MQLONG)read_int(r);
    date_and_time(read_int(r), md->PutDate, md->PutTime);
    if (reply->fields < 8) return;
    read_id(r, md->GroupId);
    md->MsgSeqNumber = (MQLONG)read_int(r);
    md->Offset = (MQLONG)read_int(r);
}

static void tell(const struct connection *connection, struct putting *put, void *md, MQPMO *pmo, const char *q_name) {
    write_md(md, &put->md);
    fill_field(pmo->ResolvedQName, NAME_LENGTH, (const uint8_t *)q_name, strlen(q_name));
    fill_field(pmo->ResolvedQMgrName, NAME_LENGTH, (const uint8_t *)connection->name, strlen(connection->name));
}

/* Sends a put through a handle, or to a queue by its name. */
static struct result put_message(struct connection *connection, struct putting *put, struct object *object,
                                 const char *q_name, void *md, MQPMO *pmo) {
    int64_t context = 0;
    if (put->pmo.Options & (MQPMO_PASS_IDENTITY_CONTEXT | MQPMO_PASS_ALL_CONTEXT)) {
        struct object *from = find_object(connection, put->pmo.Context);
        if (from == NULL) return failed(2097); /* MQRC_CONTEXT_HANDLE_ERROR */
        context = from->number;
    }
    write_put(connection, put, object, q_name, context);
    if (put->pmo.Options & MQPMO_ASYNC_RESPONSE) {
        struct result result = send_call(connection);
        if (result.comp_code == MQCC_FAILED) return result;
        defer_put(connection, object ? object->q_name : q_name, put->pmo.Options & MQPMO_SYNCPOINT);
        tell(connection, put, md, pmo, object ? object->q_name : q_name);
        return result;
    }
    struct reply reply;
    struct result result = exchange(connection, &reply);
    if (result.comp_code == MQCC_FAILED) return result;
    read_was_put(&reply, &put->md);
    if (reply.reader.failed || strcmp(reply.tag, "was_put") != 0) {
        break_link(connection, MQRC_CONNECTION_BROKEN);
        return failed(MQRC_CONNECTION_BROKEN);
    }
    tell(connection, put, md, pmo, object ? object->q_name : q_name);
    return result;
}

void MQPUT(MQHCONN Hconn, MQHOBJ Hobj, PMQVOID MsgDesc, PMQVOID PutMsgOpts, MQLONG BufferLength, PMQVOID Buffer,
           PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        struct putting put;
        struct object *object = find_object(connection, Hobj);
        MQLONG reason = read_put(connection, &put, MsgDesc, PutMsgOpts, BufferLength, Buffer);
        if (object == NULL) reason = MQRC_HOBJ_ERROR;
        result = reason ? failed(reason) : put_message(connection, &put, object, "", MsgDesc, PutMsgOpts);
        free(put.with_header.bytes);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}

void MQPUT1(MQHCONN Hconn, PMQVOID ObjDesc, PMQVOID MsgDesc, PMQVOID PutMsgOpts, MQLONG BufferLength, PMQVOID Buffer,
            PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        struct putting put;
        MQOD od;
        char q_name[NAME_LENGTH + 1] = "";
        MQLONG reason = read_put(connection, &put, MsgDesc, PutMsgOpts, BufferLength, Buffer);
        MQLONG of_object = read_od(ObjDesc, &od);
        if (of_object == MQRC_NONE) of_object = od.ObjectType == MQOT_Q ? check_q_mgr(connection, &od) : MQRC_OBJECT_TYPE_ERROR;
        if (of_object != MQRC_NONE) reason = of_object;
        if (reason == MQRC_NONE) name_of_field(q_name, od.ObjectName);
        result = reason ? failed(reason) : put_message(connection, &put, NULL, q_name, MsgDesc, PutMsgOpts);
        free(put.with_header.bytes);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}
