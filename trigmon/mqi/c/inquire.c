/* MQINQ and MQSET: attributes by their selectors, from the table that trigmon/mq/attributes.py is made into. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "attributes.h"
#include "internal.h"

#define FIRST_INTEGER 1
#define LAST_INTEGER 2000
#define FIRST_TEXT 2001
#define LAST_TEXT 4000
#define MOST_SELECTORS 256

/* What an MQINQ writes to: the places that are left in its two arrays. */
struct answers {
    PMQLONG numbers;
    MQLONG numbers_left;
    PMQCHAR text;
    MQLONG text_left;
    MQLONG warning;
};

/* Attributes that the queue manager has under a name of its own: times, and what it is. */
enum { CREATION_DATE = 2004, CREATION_TIME = 2005, ALTERATION_DATE = 2027, ALTERATION_TIME = 2028, PROCESS_DESC = 2011, Q_MGR_DESC = 2014, Q_DESC = 2013 };

/* What is always so here: no distribution lists, binding on open, synchronous puts, no read ahead, and properties as with
   PROPCTL(COMPAT). The same as in trigmon/mqi/selectors.py. */
static const struct {
    MQLONG selector;
    MQLONG value;
} fixed[] = {{34, 0}, {61, 0}, {184, 1}, {188, 0}, {190, 0}};

static const MQLONG *find_fixed(MQLONG selector) {
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        if (fixed[i].selector == selector) return &fixed[i].value;
    return NULL;
}

static const struct attribute *find_attribute(MQLONG selector) {
    if (selector == PROCESS_DESC || selector == Q_MGR_DESC) selector = Q_DESC;
    for (size_t i = 0; i < ATTRIBUTE_COUNT; i++)
        if (attributes[i].selector == selector) return &attributes[i];
    return NULL;
}

/* Returns the name by which to ask for a time, or NULL. */
static const char *time_name(MQLONG selector) {
    if (selector == CREATION_DATE || selector == CREATION_TIME) return "created_ms";
    return selector == ALTERATION_DATE || selector == ALTERATION_TIME ? "altered_ms" : NULL;
}

/* The descriptions of a process and of the queue manager have selectors of their own. */
static const char *plain_name(MQLONG selector) {
    if (find_fixed(selector) != NULL) return "name"; /* the object has it, whatever it is */
    return selector == PROCESS_DESC || selector == Q_MGR_DESC ? "description" : time_name(selector);
}

/* Returns IBM's number of a word that an enumeration's value is told by. */
static MQLONG number_of_word(const struct attribute *attribute, struct slice word) {
    for (const struct word *each = attribute->words; each != NULL && each->text != NULL; each++)
        if (strlen(each->text) == word.length && memcmp(each->text, word.bytes, word.length) == 0) return each->number;
    return MQIAV_NOT_APPLICABLE;
}

static int is_key(struct slice key, const char *name) {
    return key.length == strlen(name) && memcmp(key.bytes, name, key.length) == 0;
}

/* Returns whether a value of the reply is the one that a selector asked for. */
static int is_answer(struct slice key, MQLONG selector, const struct attribute *attribute) {
    const char *by_time = time_name(selector);
    if (by_time != NULL) return is_key(key, by_time);
    if (attribute == NULL) return 0;
    return is_key(key, attribute->name) || (attribute->is_name && is_key(key, "name"));
}

static void add_number(struct answers *answers, int64_t value) {
    if (answers->numbers_left <= 0) {
        answers->warning = answers->warning ? answers->warning : MQRC_INT_ATTR_COUNT_TOO_SMALL;
        return;
    }
    *answers->numbers++ = (MQLONG)value;
    answers->numbers_left--;
}

static void add_text(struct answers *answers, size_t size, const uint8_t *text, size_t length) {
    if (answers->text_left <= 0 || (size_t)answers->text_left < size) {
        if (answers->text_left > 0) {
            fill_field(answers->text, (size_t)answers->text_left, text, length);
            answers->text += answers->text_left;
        }
        answers->text_left = 0;
        answers->warning = answers->warning ? answers->warning : MQRC_CHAR_ATTRS_TOO_SHORT;
        return;
    }
    fill_field(answers->text, size, text, length);
    answers->text += size;
    answers->text_left -= (MQLONG)size;
}

/* Adds a value of time: the first ten of 2026-11-25, or hh.mm.ss in the field of eight. */
static void add_time(struct answers *answers, MQLONG selector, int64_t ms) {
    char date[8], time[8], text[16];
    date_and_time(ms, date, time);
    if (selector == CREATION_DATE || selector == ALTERATION_DATE) {
        snprintf(text, sizeof text, "%.4s-%.2s-%.2s", date, date + 4, date + 6);
        add_text(answers, 12, (const uint8_t *)text, 10);
    } else {
        snprintf(text, sizeof text, "%.2s.%.2s.%.2s", time, time + 2, time + 4);
        add_text(answers, 8, (const uint8_t *)text, 8);
    }
}

/* Finds one selector's value in the reply's map and adds it. Returns 0 where the map is no map of values. */
static int add_value(struct reader map, MQLONG selector, struct answers *answers) {
    const struct attribute *attribute = find_attribute(selector);
    uint32_t count = read_map(&map);
    for (; count > 0 && !map.failed; count--) {
        struct slice key = read_text(&map);
        if (map.failed) return 0;
        if (!is_answer(key, selector, attribute)) {
            skip_value(&map);
            continue;
        }
        int is_word = read_is_text(&map);
        struct slice text = {NULL, 0};
        int64_t number = 0;
        if (is_word)
            text = read_text(&map);
        else
            number = read_int(&map);
        if (map.failed) return 0;
        if (time_name(selector))
            add_time(answers, selector, number);
        else if (selector >= FIRST_TEXT)
            add_text(answers, (size_t)attribute->length, text.bytes, text.length);
        else
            add_number(answers, is_word ? number_of_word(attribute, text) : number);
        return 1;
    }
    return 0;
}

static MQLONG check_arrays(MQLONG count, const MQLONG *selectors, MQLONG numbers, MQLONG text) {
    if (count < 0 || (count > 0 && selectors == NULL)) return MQRC_SELECTOR_COUNT_ERROR;
    if (count > MOST_SELECTORS) return MQRC_SELECTOR_LIMIT_EXCEEDED;
    if (numbers < 0) return MQRC_INT_ATTR_COUNT_ERROR;
    if (text < 0) return MQRC_CHAR_ATTR_LENGTH_ERROR;
    for (MQLONG i = 0; i < count; i++) {
        int is_integer = selectors[i] >= FIRST_INTEGER && selectors[i] <= LAST_INTEGER;
        int is_text = selectors[i] >= FIRST_TEXT && selectors[i] <= LAST_TEXT;
        if (!is_integer && !is_text) return MQRC_SELECTOR_ERROR;
    }
    return MQRC_NONE;
}

static struct result inquire(struct connection *c, const struct object *object, MQLONG count, const MQLONG *selectors,
                             struct answers *answers) {
    struct reply reply;
    struct writer *out = &c->out;
    begin_call(c, "inquire", 2);
    write_int(out, object->number);
    write_array(out, (uint32_t)count);
    for (MQLONG i = 0; i < count; i++) {
        const char *name = plain_name(selectors[i]);
        if (name != NULL)
            write_text(out, name, strlen(name));
        else
            write_int(out, selectors[i]);
    }
    struct result result = exchange(c, &reply);
    if (result.comp_code == MQCC_FAILED) return result;
    answers->warning = result.reason;
    if (strcmp(reply.tag, "values") != 0 || reply.fields < 1) return failed(MQRC_SELECTOR_ERROR);
    for (MQLONG i = 0; i < count; i++) {
        const MQLONG *always = find_fixed(selectors[i]);
        if (always != NULL)
            add_number(answers, *always);
        else if (!add_value(reply.reader, selectors[i], answers))
            return failed(MQRC_SELECTOR_ERROR);
    }
    return warned(answers->warning);
}

void MQINQ(MQHCONN Hconn, MQHOBJ Hobj, MQLONG SelectorCount, PMQLONG Selectors, MQLONG IntAttrCount, PMQLONG IntAttrs,
           MQLONG CharAttrLength, PMQCHAR CharAttrs, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        struct object *object = find_object(connection, Hobj);
        MQLONG reason = check_arrays(SelectorCount, Selectors, IntAttrCount, CharAttrLength);
        struct answers answers = {IntAttrs, IntAttrs ? IntAttrCount : 0, CharAttrs, CharAttrs ? CharAttrLength : 0, 0};
        if (object == NULL) reason = MQRC_HOBJ_ERROR;
        result = (struct result){MQCC_OK, MQRC_NONE};
        if (reason != MQRC_NONE)
            result = failed(reason);
        else if (SelectorCount > 0)
            result = inquire(connection, object, SelectorCount, Selectors, &answers);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}

/* Returns whether the two arrays hold a value for each selector. */
static MQLONG check_values(MQLONG count, const MQLONG *selectors, MQLONG numbers, MQLONG text) {
    for (MQLONG i = 0; i < count; i++) {
        const struct attribute *attribute = find_attribute(selectors[i]);
        if (attribute == NULL) return MQRC_SELECTOR_ERROR;
        if (selectors[i] >= FIRST_TEXT)
            text -= attribute->length;
        else
            numbers--;
        if (text < 0) return MQRC_CHAR_ATTRS_TOO_SHORT;
        if (numbers < 0) return MQRC_INT_ATTR_COUNT_TOO_SMALL;
    }
    return MQRC_NONE;
}

void MQSET(MQHCONN Hconn, MQHOBJ Hobj, MQLONG SelectorCount, PMQLONG Selectors, MQLONG IntAttrCount, PMQLONG IntAttrs,
           MQLONG CharAttrLength, PMQCHAR CharAttrs, PMQLONG CompCode, PMQLONG Reason) {
    struct result result;
    struct connection *connection = enter(Hconn, &result);
    if (connection != NULL) {
        struct object *object = find_object(connection, Hobj);
        MQLONG reason = check_arrays(SelectorCount, Selectors, IntAttrCount, CharAttrLength);
        if (reason == MQRC_NONE)
            reason = check_values(SelectorCount, Selectors, IntAttrs ? IntAttrCount : 0, CharAttrs ? CharAttrLength : 0);
        if (object == NULL) reason = MQRC_HOBJ_ERROR;
        if (reason == MQRC_NONE) {
            struct reply reply;
            struct writer *out = &connection->out;
            begin_call(connection, "set", 2);
            write_int(out, object->number);
            write_map(out, (uint32_t)SelectorCount);
            for (MQLONG i = 0; i < SelectorCount; i++) {
                write_int(out, Selectors[i]);
                if (Selectors[i] < FIRST_TEXT) {
                    write_int(out, *IntAttrs++);
                    continue;
                }
                size_t size = (size_t)find_attribute(Selectors[i])->length;
                write_field(out, CharAttrs, size);
                CharAttrs += size;
            }
            result = exchange(connection, &reply);
        } else
            result = failed(reason);
        leave(connection);
    }
    answer(result, CompCode, Reason);
}
