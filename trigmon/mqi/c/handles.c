/* Message handles: MQCRTMH, MQDLTMH, and the properties by name: MQSETMP, MQDLTMP, MQINQMP. */
#include <stdlib.h>
#include <string.h>

#include "properties.h"

#define MOST_MESSAGES 65536
#define PLACE_BITS 16
#define LONGEST_NAME 4095
#define LONGEST_VALUE (100 << 20) /* as the longest message */

struct message {
    MQHMSG hmsg;
    MQHCONN hconn;
    struct properties properties;
};

static pthread_mutex_t messages_lock = PTHREAD_MUTEX_INITIALIZER;
static struct message **messages;
static size_t message_count;
static uint64_t made;

static struct message *looked_up(MQHMSG hmsg) {
    size_t place = (size_t)(hmsg & (MOST_MESSAGES - 1));
    if (hmsg <= 0 || place >= message_count || messages[place] == NULL) return NULL;
    return messages[place]->hmsg == hmsg ? messages[place] : NULL;
}

/* Locks the message handles for a fork, until release_message. */
void lock_messages(void) {
    pthread_mutex_lock(&messages_lock);
}

struct properties *message_of(MQHMSG hmsg) {
    pthread_mutex_lock(&messages_lock);
    struct message *found = looked_up(hmsg);
    if (found != NULL) return &found->properties;
    pthread_mutex_unlock(&messages_lock);
    return NULL;
}

void release_message(void) {
    pthread_mutex_unlock(&messages_lock);
}

static void free_place(size_t place) {
    clear_properties(&messages[place]->properties);
    free(messages[place]);
    messages[place] = NULL;
}

/* Frees the message handles of a connection that has ended. */
void free_messages(MQHCONN hconn) {
    pthread_mutex_lock(&messages_lock);
    for (size_t place = 0; place < message_count; place++)
        if (messages[place] != NULL && messages[place]->hconn == hconn) free_place(place);
    pthread_mutex_unlock(&messages_lock);
}

/* Finds a free place, making room; MOST_MESSAGES where there is none. */
static size_t free_place_of(void) {
    for (size_t place = 0; place < message_count; place++)
        if (messages[place] == NULL) return place;
    if (message_count == MOST_MESSAGES) return MOST_MESSAGES;
    size_t count = message_count ? 2 * message_count : 16;
    struct message **room = realloc(messages, count * sizeof *room);
    if (room == NULL) return MOST_MESSAGES;
    memset(room + message_count, 0, (count - message_count) * sizeof *room);
    messages = room;
    size_t place = message_count;
    message_count = count;
    return place;
}

static MQLONG check_connection(MQHCONN hconn) {
    return hconn == MQHC_UNASSOCIATED_HCONN || is_connected(hconn) ? MQRC_NONE : MQRC_HCONN_ERROR;
}

void MQCRTMH(MQHCONN Hconn, PMQVOID CrtMsgHOpts, PMQHMSG Hmsg, PMQLONG CompCode, PMQLONG Reason) {
    MQLONG reason = check_connection(Hconn);
    if (Hmsg != NULL) *Hmsg = MQHM_UNUSABLE_HMSG;
    if (reason == MQRC_NONE && !is_struct(CrtMsgHOpts, "CMHO", 1)) reason = MQRC_CMHO_ERROR;
    if (reason == MQRC_NONE && Hmsg == NULL) reason = MQRC_HMSG_ERROR;
    if (reason == MQRC_NONE) {
        watch_forks();
        pthread_mutex_lock(&messages_lock);
        size_t place = free_place_of();
        struct message *message = place < MOST_MESSAGES ? calloc(1, sizeof *message) : NULL;
        if (message == NULL)
            reason = MQRC_HANDLE_NOT_AVAILABLE;
        else {
            message->hmsg = (MQHMSG)(++made << PLACE_BITS | place);
            message->hconn = Hconn;
            messages[place] = message;
            *Hmsg = message->hmsg;
        }
        pthread_mutex_unlock(&messages_lock);
    }
    answer((struct result){reason ? MQCC_FAILED : MQCC_OK, reason}, CompCode, Reason);
}

void MQDLTMH(MQHCONN Hconn, PMQHMSG Hmsg, PMQVOID DltMsgHOpts, PMQLONG CompCode, PMQLONG Reason) {
    MQLONG reason = check_connection(Hconn);
    if (reason == MQRC_NONE && !is_struct(DltMsgHOpts, "DMHO", 1)) reason = MQRC_DMHO_ERROR;
    if (reason == MQRC_NONE && (Hmsg == NULL || message_of(*Hmsg) == NULL)) reason = MQRC_HMSG_ERROR;
    if (reason == MQRC_NONE) {
        free_place((size_t)(*Hmsg & (MOST_MESSAGES - 1)));
        release_message();
        *Hmsg = MQHM_UNUSABLE_HMSG;
    }
    answer((struct result){reason ? MQCC_FAILED : MQCC_OK, reason}, CompCode, Reason);
}

/* Returns whether characters may stand in a name: of UTF-8, and of the first 65536 alone. */
static int is_text_of_name(const struct slice *text) {
    const uint8_t *at = text->bytes, *end = at + text->length;
    for (uint32_t code; at < end;) {
        size_t size = utf8_character(at, end, &code);
        if (size == 0 || size > 3) return 0;
        at += size;
    }
    return 1;
}

/* Returns the name of an MQCHARV. A wildcard is a name only where one is asked for. */
static MQLONG read_name(const MQCHARV *name, struct slice *text, int may_be_wild) {
    int is_valid = 0;
    if (name == NULL) return MQRC_PROPERTY_NAME_ERROR;
    *text = charv_text(name, name, &is_valid);
    while (is_valid && text->length > 0 && text->bytes[text->length - 1] == ' ') text->length--;
    if (!is_valid) return MQRC_PROPERTY_NAME_ERROR;
    if (text->length == 0 || text->length > LONGEST_NAME) return MQRC_PROPERTY_NAME_LENGTH_ERR;
    if (!is_text_of_name(text)) return MQRC_PROPERTY_NAME_ERROR;
    int starts = 1;
    for (size_t i = 0; i < text->length; i++) {
        uint8_t c = text->bytes[i];
        int is_letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
        int is_inside = is_letter || c == '_' || c == '$' || c >= 0x80 || (!starts && ((c >= '0' && c <= '9') || c == '-'));
        if (may_be_wild && c == '%' && i + 1 == text->length && starts) return MQRC_NONE;
        if (c == '.' ? starts || i + 1 == text->length : !is_inside) return MQRC_PROPERTY_NAME_ERROR;
        starts = c == '.';
    }
    return MQRC_NONE;
}

/* Finds out how long a value is. A type of one length has that one and no other. */
static MQLONG size_of_value(MQLONG type, MQLONG length, const void *given, size_t *size) {
    *size = fixed_size(type);
    if (type == MQTYPE_NULL) return MQRC_NONE;
    int is_long = type == MQTYPE_STRING || type == MQTYPE_BYTE_STRING;
    if (*size == 0 && !is_long) return MQRC_PROPERTY_TYPE_ERROR;
    if (type == MQTYPE_STRING && length == MQVL_NULL_TERMINATED)
        *size = given ? strnlen(given, LONGEST_VALUE + 1) : 0;
    else if (length < 0 || (!is_long && (size_t)length != *size))
        return MQRC_BUFFER_LENGTH_ERROR;
    else
        *size = (size_t)length;
    if (*size > LONGEST_VALUE) return MQRC_BUFFER_LENGTH_ERROR;
    return *size > 0 && given == NULL ? MQRC_BUFFER_ERROR : MQRC_NONE;
}

/* Copies the value to be set, text in UTF-8. */
static MQLONG read_value(const MQSMPO *options, MQLONG type, MQLONG length, const void *given, struct writer *value) {
    size_t size;
    MQLONG reason = size_of_value(type, length, given, &size);
    if (reason != MQRC_NONE) return reason;
    MQLONG ccsid = options->ValueCCSID == MQCCSI_APPL || options->ValueCCSID == MQCCSI_Q_MGR ? TRIGMON_CCSID : options->ValueCCSID;
    if (type == MQTYPE_STRING) {
        if (!is_known_ccsid(ccsid)) return MQRC_SOURCE_CCSID_ERROR;
        return convert_text(ccsid, given, size, TRIGMON_CCSID, value, 0) < 0 ? MQRC_PROP_VALUE_NOT_CONVERTED : MQRC_NONE;
    }
    if (size > 0) {
        if (!writer_reserve(value, size)) return MQRC_STORAGE_NOT_AVAILABLE;
        memcpy(value->bytes, given, size);
    }
    value->length = size;
    return MQRC_NONE;
}

/* Sets a property in the place that the options say; the first of its name unless they say another. */
static MQLONG set_property(struct properties *all, MQLONG options, struct slice name, MQLONG type, const struct writer *value) {
    struct property *behind = NULL, *same = find_property(all, name.bytes, name.length);
    int by_cursor = options & (MQSMPO_SET_PROP_UNDER_CURSOR | MQSMPO_SET_PROP_AFTER_CURSOR | MQSMPO_SET_PROP_BEFORE_CURSOR);
    if (by_cursor && all->cursor == NULL) return MQRC_PROPERTY_NOT_AVAILABLE;
    if (options & MQSMPO_SET_PROP_UNDER_CURSOR) same = all->cursor;
    if (options & MQSMPO_APPEND_PROPERTY) same = NULL;
    if (options & MQSMPO_SET_PROP_AFTER_CURSOR) {
        behind = all->cursor;
        same = NULL;
    } else
        behind = same;
    struct slice inner = within_usr(name);
    struct property *added =
        add_property(all, behind, (const char *)inner.bytes, inner.length, type, value->bytes, value->length);
    if (added == NULL) return MQRC_STORAGE_NOT_AVAILABLE;
    if (same != NULL) remove_property(all, same);
    all->cursor = added;
    return MQRC_NONE;
}

void MQSETMP(MQHCONN Hconn, MQHMSG Hmsg, PMQVOID SetPropOpts, PMQVOID Name, PMQVOID PropDesc, MQLONG Type, MQLONG ValueLength,
             PMQVOID Value, PMQLONG CompCode, PMQLONG Reason) {
    struct slice name;
    struct writer value = {0};
    MQLONG reason = check_connection(Hconn);
    if (reason == MQRC_NONE && !is_struct(SetPropOpts, "SMPO", 1)) reason = MQRC_SMPO_ERROR;
    if (reason == MQRC_NONE && !is_struct(PropDesc, "PD  ", 1)) reason = MQRC_PD_ERROR;
    if (reason == MQRC_NONE) reason = read_name(Name, &name, 0);
    if (reason == MQRC_NONE) reason = read_value(SetPropOpts, Type, ValueLength, Value, &value);
    if (reason == MQRC_NONE) {
        struct properties *all = message_of(Hmsg);
        reason = all == NULL ? MQRC_HMSG_ERROR : set_property(all, ((MQSMPO *)SetPropOpts)->Options, name, Type, &value);
        if (all != NULL) release_message();
    }
    free(value.bytes);
    answer((struct result){reason ? MQCC_FAILED : MQCC_OK, reason}, CompCode, Reason);
}

void MQDLTMP(MQHCONN Hconn, MQHMSG Hmsg, PMQVOID DltPropOpts, PMQVOID Name, PMQLONG CompCode, PMQLONG Reason) {
    struct slice name;
    MQLONG reason = check_connection(Hconn);
    if (reason == MQRC_NONE && !is_struct(DltPropOpts, "DMPO", 1)) reason = MQRC_DMPO_ERROR;
    if (reason == MQRC_NONE) reason = read_name(Name, &name, 0);
    if (reason == MQRC_NONE) {
        struct properties *all = message_of(Hmsg);
        int by_cursor = ((MQDMPO *)DltPropOpts)->Options & MQDMPO_DEL_PROP_UNDER_CURSOR;
        struct property *one = all == NULL ? NULL : by_cursor ? all->cursor : find_property(all, name.bytes, name.length);
        if (one != NULL) remove_property(all, one);
        reason = all == NULL ? MQRC_HMSG_ERROR : one == NULL ? MQRC_PROPERTY_NOT_AVAILABLE : MQRC_NONE;
        if (all != NULL) release_message();
    }
    MQLONG comp_code = reason == MQRC_PROPERTY_NOT_AVAILABLE ? MQCC_WARNING : reason ? MQCC_FAILED : MQCC_OK;
    answer((struct result){comp_code, reason}, CompCode, Reason);
}

static struct property *inquired(struct properties *all, MQLONG options, struct slice name) {
    if (options & MQIMPO_INQ_PROP_UNDER_CURSOR) return all->cursor;
    struct property *from = all->first;
    if (options & MQIMPO_INQ_NEXT && all->cursor != NULL) from = all->cursor->next;
    return find_from(from, name.bytes, name.length);
}

/* Writes the name of what was found where the program wants it. */
static MQLONG tell_name(MQIMPO *options, const char *name) {
    MQCHARV *to = &options->ReturnedName;
    char *buffer = to->VSPtr ? to->VSPtr : to->VSOffset ? (char *)options + to->VSOffset : NULL;
    size_t length = strlen(name);
    to->VSLength = (MQLONG)length;
    to->VSCCSID = TRIGMON_CCSID;
    if (buffer == NULL || to->VSBufSize <= 0) return MQRC_NONE;
    size_t room = (size_t)to->VSBufSize;
    memcpy(buffer, name, length < room ? length : room);
    if (length < room) buffer[length] = '\0';
    return length <= room ? MQRC_NONE : MQRC_PROPERTY_NAME_TOO_BIG;
}

/* Copies a property's value, in the type that is asked for, as far as the options allow that. */
static MQLONG tell_value(MQIMPO *options, const struct property *one, MQLONG *type, MQLONG room, void *value, MQLONG *length) {
    struct writer converted = {0};
    MQLONG wanted = options->Options & MQIMPO_CONVERT_TYPE ? *type : MQTYPE_AS_SET;
    MQLONG reason = converted_value(one, wanted, &converted);
    if (reason == MQRC_NONE) {
        *type = wanted == MQTYPE_AS_SET ? one->type : wanted;
        *length = (MQLONG)converted.length;
        options->ReturnedEncoding = MQENC_NATIVE;
        options->ReturnedCCSID = TRIGMON_CCSID;
        size_t copied = converted.length < (size_t)room ? converted.length : (size_t)room;
        int only_length = options->Options & MQIMPO_QUERY_LENGTH;
        if (copied > 0 && value != NULL && !only_length) memcpy(value, converted.bytes, copied);
        if (!only_length && converted.length > (size_t)room) reason = MQRC_PROPERTY_VALUE_TOO_BIG;
    }
    free(converted.bytes);
    return reason;
}

void MQINQMP(MQHCONN Hconn, MQHMSG Hmsg, PMQVOID InqPropOpts, PMQVOID Name, PMQVOID PropDesc, PMQLONG Type,
             MQLONG ValueLength, PMQVOID Value, PMQLONG DataLength, PMQLONG CompCode, PMQLONG Reason) {
    struct slice name;
    MQIMPO *options = InqPropOpts;
    MQLONG type = Type ? *Type : MQTYPE_AS_SET, length = 0, reason = check_connection(Hconn);
    if (reason == MQRC_NONE && !is_struct(InqPropOpts, "IMPO", 1)) reason = MQRC_IMPO_ERROR;
    if (reason == MQRC_NONE && !is_struct(PropDesc, "PD  ", 1)) reason = MQRC_PD_ERROR;
    if (reason == MQRC_NONE && ValueLength < 0) reason = MQRC_BUFFER_LENGTH_ERROR;
    if (reason == MQRC_NONE && ValueLength > 0 && Value == NULL) reason = MQRC_BUFFER_ERROR;
    if (reason == MQRC_NONE) reason = read_name(Name, &name, 1);
    if (reason == MQRC_NONE) {
        struct properties *all = message_of(Hmsg);
        struct property *one = all == NULL ? NULL : inquired(all, options->Options, name);
        reason = all == NULL ? MQRC_HMSG_ERROR : one == NULL ? MQRC_PROPERTY_NOT_AVAILABLE : MQRC_NONE;
        if (one != NULL) {
            reason = tell_value(options, one, &type, ValueLength, Value, &length);
            MQLONG of_name = tell_name(options, one->name);
            if (reason == MQRC_NONE) reason = of_name;
            if (reason == MQRC_NONE) all->cursor = one;
        }
        if (all != NULL) release_message();
    }
    if (Type != NULL) *Type = type;
    if (DataLength != NULL) *DataLength = length;
    answer((struct result){reason ? MQCC_FAILED : MQCC_OK, reason}, CompCode, Reason);
}
