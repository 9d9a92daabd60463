/* MQRFH2: properties as folders of XML before the data. Layout as in trigmon/mq/rfh2.py.

   The reader takes elements and their texts, and nothing else of XML: no document types, no processing instructions. */
#include <stdlib.h>
#include <string.h>

#include "properties.h"

#define FIXED 36
#define MOST_NAME 4104 /* the longest name, 4095 bytes, in the folder usr */
#define MOST_DEPTH (MOST_NAME / 2)

MQLONG swapped_if(MQLONG value, MQLONG encoding) {
    return (encoding & 0xf) == 1 ? (MQLONG)__builtin_bswap32((uint32_t)value) : value;
}

static void add(struct writer *w, const void *bytes, size_t length) {
    if (length == 0 || !writer_reserve(w, length)) return;
    memcpy(w->bytes + w->length, bytes, length);
    w->length += length;
}

static void add_string(struct writer *w, const char *text) {
    add(w, text, strlen(text));
}

static void add_escaped(struct writer *w, const uint8_t *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const char *instead = text[i] == '&' ? "&amp;" : text[i] == '<' ? "&lt;" : text[i] == '>' ? "&gt;" : NULL;
        if (instead != NULL)
            add_string(w, instead);
        else
            add(w, text + i, 1);
    }
}

static const struct {
    MQLONG type;
    const char *word;
} data_types[] = {
    {MQTYPE_BOOLEAN, "boolean"}, {MQTYPE_BYTE_STRING, "bin.hex"}, {MQTYPE_INT8, "i1"},     {MQTYPE_INT16, "i2"},
    {MQTYPE_INT32, "i4"},        {MQTYPE_INT64, "i8"},            {MQTYPE_FLOAT32, "r4"}, {MQTYPE_FLOAT64, "r8"},
    {MQTYPE_INT64, "int"},       {MQTYPE_STRING, "string"},
};
#define DATA_TYPES (sizeof data_types / sizeof data_types[0])

static void add_tag(struct writer *w, const char *opening, const char *name, size_t length) {
    add_string(w, opening);
    add(w, name, length);
    add_string(w, ">");
}

/* Writes one property as an element; groups between the folder and the name are elements of their own. */
static void write_element(struct writer *w, const struct property *one, const char *path) {
    const char *dot = strrchr(path, '.'), *leaf = dot ? dot + 1 : path;
    for (const char *at = path; at < leaf; at += strcspn(at, ".") + 1) add_tag(w, "<", at, strcspn(at, "."));
    struct property as_text = *one;
    struct writer value = {0};
    add_string(w, "<");
    add_string(w, leaf);
    for (size_t i = 0; i < DATA_TYPES && one->type != MQTYPE_STRING; i++) {
        if (data_types[i].type != one->type) continue;
        add_string(w, " dt='");
        add_string(w, data_types[i].word);
        add_string(w, "'");
        break;
    }
    if (one->type == MQTYPE_NULL) add_string(w, " xsi:nil='true'");
    add_string(w, ">");
    if (one->type != MQTYPE_NULL && converted_value(&as_text, MQTYPE_STRING, &value) == MQRC_NONE)
        add_escaped(w, value.bytes, value.length);
    add_tag(w, "</", leaf, strlen(leaf));
    for (const char *end = leaf, *begin; end > path; end = begin) {
        for (begin = --end; begin > path && begin[-1] != '.'; begin--) continue;
        add_tag(w, "</", begin, (size_t)(end - begin));
    }
    w->failed |= value.failed;
    free(value.bytes);
}

static size_t folder_length(const struct property *one) {
    const char *dot = strchr(one->name, '.');
    int is_in_usr = dot == NULL || strncmp(one->name, "usr.", 4) == 0; /* usr.usr.name is a group usr in the folder usr */
    return is_in_usr ? 0 : (size_t)(dot - one->name);
}

static int is_same_folder(const struct property *a, const struct property *b) {
    size_t length = folder_length(a);
    return length == folder_length(b) && memcmp(a->name, b->name, length) == 0;
}

static int is_first_of_folder(const struct properties *all, const struct property *one) {
    for (struct property *each = all->first; each != one; each = each->next)
        if (is_same_folder(each, one)) return 0;
    return 1;
}

static int needs_content(const char *folder, size_t length) {
    static const char *const known[] = {"usr", "mq_usr", "jms", "mcd", "sib", "sib_context", "sib_usr", "ibm", "mq", "mqema", "mqext", "mqps", "mq_svc", "mqtt"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i]) == length && memcmp(known[i], folder, length) == 0) return 0;
    return 1;
}

/* Writes the folder of a property, with all of its kin, behind its length. */
static void write_folder(struct writer *w, const struct property *first) {
    size_t start = w->length, length = folder_length(first);
    const char *folder = length ? first->name : "usr";
    if (length == 0) length = 3;
    add(w, "\0\0\0\0", 4);
    add_string(w, "<");
    add(w, folder, length);
    if (needs_content(folder, length)) add_string(w, " content='properties'");
    add_string(w, ">");
    for (const struct property *one = first; one != NULL; one = one->next)
        if (is_same_folder(first, one)) write_element(w, one, one->name + (folder_length(one) ? folder_length(one) + 1 : 0));
    add_string(w, "</");
    add(w, folder, length);
    add_string(w, ">");
    while ((w->length - start) % 4 && !w->failed) add_string(w, " ");
    MQLONG size = (MQLONG)(w->length - start - 4);
    if (!w->failed) memcpy(w->bytes + start, &size, sizeof size);
}

/* Writes a header; encoding, CCSID and format are of the data behind it. Returns 0 where there is no memory. */
int write_rfh2(struct writer *w, const struct properties *all, MQLONG encoding, MQLONG ccsid, const char *format) {
    size_t start = w->length;
    MQRFH2 header = {{'R', 'F', 'H', ' '}, 2, FIXED, encoding, ccsid, {0}, 0, TRIGMON_CCSID};
    fill_field(header.Format, 8, (const uint8_t *)format, field_length(format, 8));
    add(w, &header, sizeof header);
    for (const struct property *one = all->first; one != NULL; one = one->next)
        if (is_first_of_folder(all, one)) write_folder(w, one);
    if (w->failed) return 0;
    header.StrucLength = (MQLONG)(w->length - start);
    memcpy(w->bytes + start, &header, sizeof header);
    return 1;
}

/* A folder while it is read: where it is, and the names of the elements that are open. */
struct parser {
    const uint8_t *at;
    const uint8_t *end;
    char path[MOST_NAME];
    size_t starts[MOST_DEPTH];
    int depth;
    MQLONG type;
    int is_leaf;
    struct writer text;
};

static size_t name_size(const uint8_t *at, const uint8_t *end) {
    size_t length = 0;
    while (at + length < end && strchr(" \t\r\n/>=", at[length]) == NULL && at[length] != 0) length++;
    return length;
}

/* Reads the attributes of a start tag: ``dt`` says the type, xsi:nil a null. Returns whether the element is empty, or -1. */
static int read_attributes(struct parser *p) {
    p->type = MQTYPE_STRING;
    while (p->at < p->end) {
        if (*p->at == '>') {
            p->at++;
            return 0;
        }
        if (*p->at == '/' && p->at + 1 < p->end && p->at[1] == '>') {
            p->at += 2;
            return 1;
        }
        if (strchr(" \t\r\n", *p->at) != NULL) {
            p->at++;
            continue;
        }
        const uint8_t *name = p->at;
        size_t length = name_size(p->at, p->end);
        p->at += length;
        if (length == 0 || p->end - p->at < 2 || *p->at != '=' || (p->at[1] != '\'' && p->at[1] != '"')) return -1;
        const uint8_t *value = p->at + 2;
        const uint8_t *close = memchr(value, p->at[1], (size_t)(p->end - value));
        if (close == NULL) return -1;
        p->at = close + 1;
        size_t size = (size_t)(close - value);
        for (size_t i = 0; i < DATA_TYPES && length == 2 && memcmp(name, "dt", 2) == 0; i++)
            if (strlen(data_types[i].word) == size && memcmp(data_types[i].word, value, size) == 0) p->type = data_types[i].type;
        if (length == 7 && memcmp(name, "xsi:nil", 7) == 0 && size == 4 && memcmp(value, "true", 4) == 0) p->type = MQTYPE_NULL;
    }
    return -1;
}

/* Ends the innermost element; one without elements in it, below the folder, is a property. */
static int end_element(struct parser *p, struct properties *all) {
    if (p->depth == 0) return 0;
    size_t length = strlen(p->path), start = p->starts[--p->depth];
    if (p->is_leaf && p->depth > 0) {
        struct writer value = {0};
        MQLONG type = p->type;
        if (value_of_text(p->text.bytes, p->text.length, type, &value) != MQRC_NONE) {
            value.length = 0;
            add(&value, p->text.bytes, p->text.length);
            type = MQTYPE_STRING;
        }
        struct slice name = within_usr((struct slice){(const uint8_t *)p->path, length});
        if (length > 0 && !value.failed)
            add_property(all, NULL, (const char *)name.bytes, name.length, type, value.bytes, value.length);
        free(value.bytes);
    }
    p->is_leaf = 0;
    p->path[start > 0 ? start - 1 : 0] = '\0';
    return 1;
}

static int start_element(struct parser *p, struct properties *all) {
    size_t size = name_size(p->at, p->end), length = strlen(p->path);
    if (size == 0 || p->depth == MOST_DEPTH || length + size + 2 > sizeof p->path) return 0;
    if (length > 0) p->path[length++] = '.';
    memcpy(p->path + length, p->at, size);
    p->path[length + size] = '\0';
    p->starts[p->depth++] = length;
    p->at += size;
    int is_empty = read_attributes(p);
    p->is_leaf = 1;
    p->text.length = 0;
    return is_empty < 0 ? 0 : is_empty ? end_element(p, all) : 1;
}

static int read_end_tag(struct parser *p, struct properties *all) {
    size_t size = name_size(p->at, p->end);
    const char *open = p->depth > 0 ? p->path + p->starts[p->depth - 1] : "";
    if (strlen(open) != size || memcmp(open, p->at, size) != 0) return 0;
    p->at += size;
    if (p->at == p->end || *p->at != '>') return 0;
    p->at++;
    return end_element(p, all);
}

/* Reads a text up to the next tag, with the five entities there are without a document type. */
static void read_characters(struct parser *p) {
    static const struct {
        const char *name;
        char character;
    } entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&apos;", '\''}, {"&quot;", '"'}};
    while (p->at < p->end && *p->at != '<') {
        size_t used = 1;
        char character = (char)*p->at;
        for (size_t i = 0; i < 5 && *p->at == '&'; i++) {
            size_t length = strlen(entities[i].name);
            if ((size_t)(p->end - p->at) < length || memcmp(p->at, entities[i].name, length) != 0) continue;
            character = entities[i].character;
            used = length;
        }
        add(&p->text, &character, 1);
        p->at += used;
    }
}

static int read_folder(const uint8_t *bytes, size_t length, struct properties *all) {
    struct parser p = {.at = bytes, .end = bytes + length};
    int is_sound = 1;
    while (is_sound && p.at < p.end) {
        if (*p.at != '<') {
            read_characters(&p);
            continue;
        }
        p.at++;
        if (p.at < p.end && *p.at == '/') {
            p.at++;
            is_sound = read_end_tag(&p, all);
        } else
            is_sound = start_element(&p, all);
    }
    is_sound = is_sound && p.depth == 0 && !p.text.failed;
    free(p.text.bytes);
    return is_sound;
}

/* Reads the header at the begin of these bytes. Returns its length, 0 where it is none; then ``all`` is as it was. */
size_t read_rfh2(const uint8_t *bytes, size_t length, MQLONG byte_order, struct properties *all, MQRFH2 *header) {
    if (length < FIXED) return 0;
    memcpy(header, bytes, FIXED);
    MQLONG *const numbers[] = {&header->Version, &header->StrucLength, &header->Encoding, &header->CodedCharSetId, &header->NameValueCCSID};
    for (int i = 0; i < 5; i++) *numbers[i] = swapped_if(*numbers[i], byte_order);
    if (memcmp(header->StrucId, "RFH ", 4) != 0 || header->Version != 2) return 0;
    if (header->StrucLength < FIXED || (size_t)header->StrucLength > length) return 0;
    struct properties found = {0};
    size_t at = FIXED, end = (size_t)header->StrucLength;
    int is_sound = 1;
    while (is_sound && at < end) {
        MQLONG size = -1;
        if (end - at >= 4) memcpy(&size, bytes + at, 4);
        size = swapped_if(size, byte_order);
        at += 4;
        if (size < 0 || at > end || (size_t)size > end - at) is_sound = 0;
        struct writer folder = {0};
        if (is_sound) is_sound = convert_text(header->NameValueCCSID, bytes + at, (size_t)size, TRIGMON_CCSID, &folder, 0) >= 0;
        if (is_sound) is_sound = read_folder(folder.bytes, folder.length, &found);
        free(folder.bytes);
        at += is_sound ? (size_t)size : 0;
    }
    if (is_sound) move_properties(all, &found);
    clear_properties(&found);
    return is_sound ? end : 0;
}
