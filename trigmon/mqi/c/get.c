/* MQGET: one message, with its properties in a handle or as they lie in it, converted where that is asked for. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "callback.h"
#include "internal.h"
#include "options.h"
#include "properties.h"

#define BROWSES (MQGMO_BROWSE_FIRST | MQGMO_BROWSE_NEXT | MQGMO_BROWSE_MSG_UNDER_CURSOR)
#define RFH2_LENGTH 36

MQLONG read_gmo(const void *given, MQGMO *gmo) {
    static const size_t lengths[] = {
        0, offsetof(MQGMO, MatchOptions), offsetof(MQGMO, MsgToken), offsetof(MQGMO, Reserved2), sizeof(MQGMO),
    };
    if (!is_struct(given, "GMO ", 4)) return MQRC_GMO_ERROR;
    MQLONG version;
    memcpy(&version, (const char *)given + 4, sizeof version);
    memset(gmo, 0, sizeof *gmo);
    gmo->MatchOptions = MQMO_MATCH_MSG_ID | MQMO_MATCH_CORREL_ID;
    memcpy(gmo, given, lengths[version]);
    return MQRC_NONE;
}

void write_gmo(void *given, const MQGMO *gmo) {
    static const size_t lengths[] = {
        0, offsetof(MQGMO, MatchOptions), offsetof(MQGMO, MsgToken), offsetof(MQGMO, Reserved2), sizeof(MQGMO),
    };
    memcpy((char *)given + 8, (const char *)gmo + 8, lengths[gmo->Version] - 8);
}

/* Which messages are meant: the ids that must match, of the descriptor or of a token. */
struct wanted {
    MQLONG match;
    const MQBYTE *msg_id;
    const MQBYTE *correl_id;
};

static struct message_token *token_of(const struct connection *c, const MQBYTE *token) {
    uint64_t number;
    memcpy(&number, token + 8, sizeof number);
    if (memcmp(token, c->client_id, 8) != 0 || number == 0 || c->tokens == NULL) return NULL;
    struct message_token *found = &c->tokens[number % TOKENS];
    return found->number == number ? found : NULL;
}

/* Gives a message that was got a token, by which this connection finds it again. */
static void give_token(struct connection *c, const MQMD *md, MQGMO *gmo) {
    if (gmo->Version < 3) return;
    if (c->tokens == NULL) c->tokens = calloc(TOKENS, sizeof *c->tokens);
    if (c->tokens == NULL) return;
    uint64_t number = ++c->last_token;
    struct message_token *place = &c->tokens[number % TOKENS];
    place->number = number;
    memcpy(place->msg_id, md->MsgId, 24);
    memcpy(place->correl_id, md->CorrelId, 24);
    memcpy(gmo->MsgToken, c->client_id, 8);
    memcpy(gmo->MsgToken + 8, &number, sizeof number);
}

static MQLONG read_wanted(const struct connection *c, const MQMD *md, const MQGMO *gmo, struct wanted *wanted) {
    *wanted = (struct wanted){gmo->MatchOptions & ~MQMO_MATCH_MSG_TOKEN, md->MsgId, md->CorrelId};
    if (gmo->MatchOptions & MQMO_MATCH_MSG_TOKEN && gmo->Version >= 3 && !is_zero(gmo->MsgToken, 16)) {
        struct message_token *token = token_of(c, gmo->MsgToken);
        if (token == NULL) return MQRC_NO_MSG_AVAILABLE; /* of another connection, or long ago */
        *wanted = (struct wanted){MQMO_MATCH_MSG_ID | MQMO_MATCH_CORREL_ID, token->msg_id, token->correl_id};
    }
    /* An id of nulls matches any message. */
    if (is_zero(wanted->msg_id, 24)) wanted->match &= ~MQMO_MATCH_MSG_ID;
    if (is_zero(wanted->correl_id, 24)) wanted->match &= ~MQMO_MATCH_CORREL_ID;
    if (md->Version < 2) wanted->match &= ~(MQMO_MATCH_GROUP_ID | MQMO_MATCH_MSG_SEQ_NUMBER | MQMO_MATCH_OFFSET);
    if (is_zero(md->GroupId, 24)) wanted->match &= ~MQMO_MATCH_GROUP_ID;
    return MQRC_NONE;
}

static struct result ask(struct connection *c, const struct object *object, const MQMD *md, const MQGMO *gmo,
                         const struct wanted *wanted, MQLONG max_length, struct got *got) {
    struct reply reply;
    struct writer *out = &c->out;
    int is_unit = gmo->Options & (MQGMO_SYNCPOINT | MQGMO_SYNCPOINT_IF_PERSISTENT);
    begin_call(c, "get", 11);
    write_int(out, object->number);
    write_int(out, gmo->Options & ~GET_WITHOUT_EFFECT);
    write_int(out, gmo->Options & MQGMO_WAIT ? gmo->WaitInterval : 0);
    write_int(out, max_length);
    write_int(out, wanted->match);
    write_binary(out, wanted->msg_id, 24);
    write_binary(out, wanted->correl_id, 24);
    write_int(out, is_unit ? c->unit : 0);
    write_binary(out, md->GroupId, 24);
    write_int(out, md->Version < 2 ? 1 : md->MsgSeqNumber);
    write_int(out, md->Version < 2 ? 0 : md->Offset);
    if (is_unit) c->in_unit = 1;
    if (is_unit && gmo->Options & MQGMO_MARK_SKIP_BACKOUT) c->marked = 1;
    struct result result = exchange(c, &reply);
    if (result.comp_code == MQCC_FAILED) return result;
    struct reader *r = &reply.reader;
    memset(got, 0, sizeof *got);
    got->group_status = got->segment_status = ' ';
    int is_message = strcmp(reply.tag, "was_got") == 0 && reply.fields >= 3;
    if (is_message) {
        read_descriptor(r, &got->md);
        got->data = read_binary(r);
        got->length = (MQLONG)read_int(r);
    }
    if (is_message && reply.fields >= 5) {
        struct slice group = read_text(r), segment = read_text(r);
        if (group.length > 0) got->group_status = (char)group.bytes[0];
        if (segment.length > 0) got->segment_status = (char)segment.bytes[0];
    }
    if (is_message && !r->failed) return result;
    break_link(c, MQRC_CONNECTION_BROKEN);
    return failed(MQRC_CONNECTION_BROKEN);
}

static int takes_properties_out(const MQGMO *gmo) {
    if (gmo->Options & MQGMO_NO_PROPERTIES) return 1;
    if (gmo->Version < 4 || gmo->MsgHandle == MQHM_NONE || gmo->MsgHandle == MQHM_UNUSABLE_HMSG) return 0;
    return !(gmo->Options & (MQGMO_PROPERTIES_FORCE_MQRFH2 | MQGMO_PROPERTIES_COMPATIBILITY));
}

/* Takes the headers with properties off a message, into ``all``. One that cannot be read stays where it is. */
static void take_out(struct got *got, struct properties *all) {
    while (memcmp(got->md.Format, "MQHRF2  ", 8) == 0) {
        MQRFH2 header;
        size_t length = read_rfh2(got->data.bytes, got->data.length, got->md.Encoding, all, &header);
        if (length == 0) return;
        got->data.bytes += length;
        got->data.length -= length;
        got->length -= (MQLONG)length;
        fill_field(got->md.Format, 8, (const uint8_t *)header.Format, field_length(header.Format, 8));
        got->md.Encoding = header.Encoding;
        if (header.CodedCharSetId != MQCCSI_INHERIT) got->md.CodedCharSetId = header.CodedCharSetId;
    }
}

/* Converts the text of a message into the characters that the descriptor asks for. Returns the reason why not: a text that
   becomes longer than the buffer (2120) stays as it was, since what would be cut off it is on no queue any more. */
static MQLONG convert(const MQMD *asked, struct got *got, MQLONG room, struct writer *converted) {
    MQLONG to = asked->CodedCharSetId;
    if (to == MQCCSI_Q_MGR || to == MQCCSI_APPL || to == MQCCSI_EMBEDDED) to = TRIGMON_CCSID;
    MQLONG from = got->md.CodedCharSetId ? got->md.CodedCharSetId : TRIGMON_CCSID;
    int is_same = from == to && (got->md.Encoding == asked->Encoding || memcmp(got->md.Format, "MQSTR   ", 8) == 0);
    if (is_same || got->length == 0) return MQRC_NONE;
    if (memcmp(got->md.Format, "MQSTR   ", 8) != 0) return MQRC_FORMAT_ERROR;
    if (!is_known_ccsid(from)) return MQRC_SOURCE_CCSID_ERROR;
    if (!is_known_ccsid(to)) return MQRC_TARGET_CCSID_ERROR;
    /* UTF-16's byte order is what Encoding says, on both sides. */
    MQLONG from_order = from == 1200 && (got->md.Encoding & 0xf) == 2 ? 1202 : from;
    MQLONG to_order = to == 1200 && (asked->Encoding & 0xf) == 2 ? 1202 : to;
    if (convert_text(from_order, got->data.bytes, got->data.length, to_order, converted, 1) < 0) return MQRC_NOT_CONVERTED;
    if (converted->length > (size_t)room) return MQRC_CONVERTED_MSG_TOO_BIG;
    got->data = (struct slice){converted->bytes, converted->length};
    got->length = (MQLONG)converted->length;
    got->md.CodedCharSetId = to;
    got->md.Encoding = asked->Encoding;
    return MQRC_NONE;
}

static void tell(struct connection *c, const struct object *object, MQMD *md, MQGMO *gmo, struct got *got, MQLONG copied) {
    MQLONG version = md->Version;
    memcpy(got->md.StrucId, "MD  ", 4);
    *md = got->md;
    md->Version = version;
    fill_field(gmo->ResolvedQName, NAME_LENGTH, (const uint8_t *)object->q_name, strlen(object->q_name));
    gmo->GroupStatus = got->group_status;
    gmo->SegmentStatus = got->segment_status;
    gmo->Segmentation = got->md.MsgFlags & 1 ? 'A' : ' ';
    gmo->ReturnedLength = copied;
    give_token(c, md, gmo);
}

/* How much of a message to ask for: all, where it is cut behind its header or its conversion. */
static MQLONG first_limit(const MQGMO *gmo, MQLONG length) {
    return takes_properties_out(gmo) && gmo->Options & MQGMO_ACCEPT_TRUNCATED_MSG ? -1 : length;
}

/* Returns the length of a message whose header alone makes it longer than the buffer, or 0: a header that cannot be read
   stays before the data, so that it counts. */
static MQLONG fits_without_header(const struct got *got, MQLONG length) {
    MQRFH2 header;
    if (got->data.length < RFH2_LENGTH) return 0;
    memcpy(&header, got->data.bytes, sizeof header);
    MQLONG of_header = swapped_if(header.StrucLength, got->md.Encoding);
    if (of_header < RFH2_LENGTH || of_header > got->length || got->length - of_header > length) return 0;
    struct properties found = {0};
    int is_cut = (size_t)of_header > got->data.length;
    int is_header = is_cut || read_rfh2(got->data.bytes, got->data.length, got->md.Encoding, &found, &header) > 0;
    clear_properties(&found);
    return is_header ? got->length : 0;
}

/* Gets the message that was longer than the buffer, where it is not without its header. It is looked at but for its last
   byte, so that it is not taken, and got whole then: both times by its id, since another program may take it in between. */
static struct result with_room(struct connection *c, const struct object *object, const MQMD *md, const MQGMO *gmo,
                               const struct wanted *wanted, MQLONG length, struct got *got) {
    MQBYTE24 msg_id;
    memcpy(msg_id, got->md.MsgId, 24);
    MQGMO at_once = *gmo;
    at_once.Options &= ~MQGMO_WAIT;
    struct wanted same = *wanted;
    if (!(gmo->Options & MQGMO_LOGICAL_ORDER)) {
        same.msg_id = msg_id;
        same.match |= MQMO_MATCH_MSG_ID;
    }
    struct result result = ask(c, object, md, &at_once, &same, got->length - 1, got);
    if (result.reason != MQRC_TRUNCATED_MSG_FAILED) return result;
    MQLONG whole = fits_without_header(got, length);
    return whole == 0 ? result : ask(c, object, md, &at_once, &same, whole, got);
}

static struct result fetched(struct connection *c, const struct object *object, const MQMD *md, const MQGMO *gmo,
                             const struct wanted *wanted, MQLONG length, struct got *got) {
    MQGMO asked = *gmo;
    int64_t until_ms = monotonic_ms() + gmo->WaitInterval;
    for (;;) {
        struct result result = ask(c, object, md, &asked, wanted, first_limit(gmo, length), got);
        if (result.reason != MQRC_TRUNCATED_MSG_FAILED || !takes_properties_out(gmo)) return result;
        if (memcmp(got->md.Format, "MQHRF2  ", 8) != 0 || got->length <= RFH2_LENGTH) return result;
        result = with_room(c, object, md, gmo, wanted, length, got);
        if (result.reason != MQRC_NO_MSG_AVAILABLE) return result;
        /* Another program has taken it: this one waits for the next in the time that is left. */
        int64_t left_ms = until_ms - monotonic_ms();
        if (gmo->WaitInterval >= 0) asked.WaitInterval = left_ms > 0 ? (MQLONG)left_ms : 0;
    }
}

struct result get_message(struct connection *c, struct object *object, MQMD *md, MQGMO *gmo, MQLONG length, void *buffer,
                          MQLONG *data_length) {
    struct wanted wanted;
    struct got got;
    MQLONG reason = read_wanted(c, md, gmo, &wanted);
    if (reason != MQRC_NONE) return failed(reason);
    struct result result = fetched(c, object, md, gmo, &wanted, length, &got);
    if (result.comp_code == MQCC_FAILED) return result;
    if (gmo->Options & MQGMO_UNLOCK) return result;
    struct writer converted = {0};
    int is_left = result.reason == MQRC_TRUNCATED_MSG_FAILED;
    if (!is_left && takes_properties_out(gmo)) {
        struct properties none = {0};
        struct properties *all = gmo->Options & MQGMO_NO_PROPERTIES ? &none : message_of(gmo->MsgHandle);
        if (all != &none && all != NULL) clear_properties(all);
        take_out(&got, all != NULL ? all : &none);
        if (all != &none && all != NULL) release_message();
        clear_properties(&none);
    }
    if (!is_left && gmo->Options & MQGMO_CONVERT && got.data.length == (size_t)got.length) {
        reason = convert(md, &got, length, &converted);
        if (reason != MQRC_NONE && result.reason == MQRC_NONE) result = warned(reason);
    }
    size_t copied = got.data.length < (size_t)length ? got.data.length : (size_t)length;
    if (copied > 0) memcpy(buffer, got.data.bytes, copied);
    if (!is_left && got.length > (MQLONG)copied && result.reason != MQRC_TRUNCATED_MSG_ACCEPTED)
        result = warned(MQRC_TRUNCATED_MSG_ACCEPTED);
    *data_length = got.length;
    tell(c, object, md, gmo, &got, (MQLONG)copied);
    free(converted.bytes);
    return result;
}

static MQLONG check_handle(const MQGMO *gmo) {
    if (gmo->Options & MQGMO_SET_SIGNAL) return MQRC_OPTIONS_ERROR; /* z/OS's alone */
    if (gmo->Version < 4 || gmo->MsgHandle == MQHM_NONE || gmo->MsgHandle == MQHM_UNUSABLE_HMSG) return MQRC_NONE;
    if (message_of(gmo->MsgHandle) == NULL) return MQRC_HMSG_ERROR;
    release_message();
    return MQRC_NONE;
}

void MQGET(MQHCONN Hconn, MQHOBJ Hobj, PMQVOID MsgDesc, PMQVOID GetMsgOpts, MQLONG BufferLength, PMQVOID Buffer,
           PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        MQMD md;
        MQGMO gmo;
        MQLONG length = 0, reason = read_md(MsgDesc, &md);
        struct object *object = find_object(connection, Hobj);
        if (reason == MQRC_NONE) reason = read_gmo(GetMsgOpts, &gmo);
        if (reason == MQRC_NONE) reason = check_handle(&gmo);
        if (object == NULL) reason = MQRC_HOBJ_ERROR;
        if (reason == MQRC_NONE && BufferLength < 0) reason = MQRC_BUFFER_LENGTH_ERROR;
        if (reason == MQRC_NONE && BufferLength > 0 && Buffer == NULL) reason = MQRC_BUFFER_ERROR;
        if (reason == MQRC_NONE)
            result = get_message(connection, object, &md, &gmo, BufferLength, Buffer, &length);
        else
            result = failed(reason);
        if (result.comp_code != MQCC_FAILED) {
            write_md(MsgDesc, &md);
            write_gmo(GetMsgOpts, &gmo);
        }
        if (DataLength != NULL) *DataLength = length;
        leave(connection);
    }
    answer(result, CompCode, Reason);
}
