/* MQCB: which function of the program is called with the messages of an object, or with the events of a connection. */
#include <stdlib.h>
#include <string.h>

#include "callback.h"
#include "options.h"

static MQLONG check(const MQCBD *cbd) {
    if (!is_struct(cbd, "CBD ", 1)) return MQRC_CBD_ERROR;
    if (cbd->CallbackType != MQCBT_MESSAGE_CONSUMER && cbd->CallbackType != MQCBT_EVENT_HANDLER) return MQRC_CALLBACK_TYPE_ERROR;
    /* A function by the name of its module is not looked up. */
    return cbd->CallbackFunction == NULL ? MQRC_CALLBACK_ROUTINE_ERROR : MQRC_NONE;
}

static MQLONG register_consumer(struct object *object, const MQCBD *cbd, const void *md, const void *gmo) {
    struct consumer *made = calloc(1, sizeof *made);
    if (made == NULL) return MQRC_STORAGE_NOT_AVAILABLE;
    made->cbd = *cbd;
    made->waits_since_ms = monotonic_ms();
    MQLONG reason = read_md(md, &made->md);
    if (reason == MQRC_NONE) reason = read_gmo(gmo, &made->gmo);
    if (reason == MQRC_NONE && made->gmo.Options & MQGMO_SET_SIGNAL) reason = MQRC_OPTIONS_ERROR;
    if (reason != MQRC_NONE) {
        free(made);
        return reason;
    }
    free(object->consumer);
    object->consumer = made;
    return MQRC_NONE;
}

static MQLONG register_events(struct connection *c, const MQCBD *cbd) {
    struct consumption *all = consumption_of(c);
    if (all == NULL) return MQRC_STORAGE_NOT_AVAILABLE;
    all->events = *cbd;
    all->has_events = 1;
    return MQRC_NONE;
}

/* Changes what is registered. Where the program is to be told, ``told`` is the descriptor to tell it by. */
static MQLONG change(struct connection *c, MQLONG operation, const MQCBD *cbd, MQHOBJ hobj, const void *md, const void *gmo,
                     MQCBD *told) {
    MQLONG reason = operation & MQOP_REGISTER ? check(cbd) : MQRC_NONE;
    int is_event = hobj == MQHO_NONE || hobj == MQHO_UNUSABLE_HOBJ;
    struct object *object = is_event ? NULL : find_object(c, hobj);
    if (reason != MQRC_NONE) return reason;
    if (!is_event && object == NULL) return MQRC_HOBJ_ERROR;
    if (operation & MQOP_REGISTER) {
        if (is_event != (cbd->CallbackType == MQCBT_EVENT_HANDLER)) return MQRC_HOBJ_ERROR;
        reason = is_event ? register_events(c, cbd) : register_consumer(object, cbd, md, gmo);
        if (reason == MQRC_NONE && cbd->Options & MQCBDO_REGISTER_CALL) *told = *cbd;
        if (reason == MQRC_NONE && object != NULL && operation & MQOP_SUSPEND) object->consumer->suspended = 1;
        return reason;
    }
    if (is_event) {
        if (c->consumption == NULL || !c->consumption->has_events) return MQRC_CALLBACK_NOT_REGISTERED;
        if (operation & MQOP_DEREGISTER) c->consumption->has_events = 0;
        return MQRC_NONE;
    }
    if (object->consumer == NULL) return MQRC_CALLBACK_NOT_REGISTERED;
    if (operation & MQOP_SUSPEND) object->consumer->suspended = 1;
    if (operation & MQOP_RESUME) object->consumer->suspended = 0;
    if (operation & MQOP_DEREGISTER) {
        if (object->consumer->cbd.Options & MQCBDO_DEREGISTER_CALL) *told = object->consumer->cbd;
        free(object->consumer);
        object->consumer = NULL;
    }
    return MQRC_NONE;
}

void MQCB(MQHCONN Hconn, MQLONG Operation, PMQVOID CallbackDesc, MQHOBJ Hobj, PMQVOID MsgDesc, PMQVOID GetMsgOpts,
          PMQLONG CompCode, PMQLONG Reason) {
    static const MQLONG known = MQOP_REGISTER | MQOP_DEREGISTER | MQOP_SUSPEND | MQOP_RESUME;
    struct result result;
    struct connection *c = enter(Hconn, &result);
    MQCBD told = {0};
    if (c != NULL) {
        MQLONG reason = Operation == 0 || Operation & ~known ? MQRC_OPERATION_ERROR : MQRC_NONE;
        if (reason == MQRC_NONE) reason = change(c, Operation, CallbackDesc, Hobj, MsgDesc, GetMsgOpts, &told);
        result = (struct result){reason ? MQCC_FAILED : MQCC_OK, reason};
        leave(c);
    }
    answer(result, CompCode, Reason);
    MQLONG reason;
    if (told.CallbackFunction == NULL || (c = borrow(Hconn, &reason)) == NULL) return;
    MQLONG call = Operation & MQOP_REGISTER ? MQCBCT_REGISTER_CALL : MQCBCT_DEREGISTER_CALL;
    call_program(c, &told, call, Hobj, (struct result){MQCC_OK, MQRC_NONE}, NULL, NULL, NULL, 0, 0);
    give_back(c);
}
