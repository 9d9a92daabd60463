/* Message properties: a list of names with typed values, by handle, and as an MQRFH2. */
#ifndef TRIGMON_PROPERTIES_H
#define TRIGMON_PROPERTIES_H

#include "internal.h"

struct property {
    char *name; /* folder and name, without the folder usr: mcd.Msd, colour */
    MQLONG type;
    uint8_t *value; /* as the program would have it: numbers native, text in UTF-8 */
    size_t length;
    struct property *next;
};

struct properties {
    struct property *first;
    struct property *last;
    struct property *cursor;
};

/* properties.c: the list */
struct property *find_property(struct properties *all, const uint8_t *name, size_t length);
struct property *find_from(struct property *one, const uint8_t *name, size_t length);
struct property *add_property(struct properties *all, struct property *behind, const char *name, size_t name_length,
                              MQLONG type, const void *value, size_t length);
void remove_property(struct properties *all, struct property *one);
void clear_properties(struct properties *all);
int copy_properties(struct properties *to, const struct properties *from);
void move_properties(struct properties *to, struct properties *from);
struct property *stored_property(struct properties *all, const struct property *last, const char *name);
struct slice within_usr(struct slice name);

/* rfh2.c: each returns 0 where there is no memory, or the bytes are no MQRFH2 */
int write_rfh2(struct writer *w, const struct properties *all, MQLONG encoding, MQLONG ccsid, const char *format);
size_t read_rfh2(const uint8_t *bytes, size_t length, MQLONG byte_order, struct properties *all, MQRFH2 *header);
MQLONG swapped_if(MQLONG value, MQLONG encoding);

/* values.c: between types */
MQLONG text_of_value(const struct property *one, char *text, size_t room);
MQLONG value_of_text(const uint8_t *text, size_t length, MQLONG type, struct writer *value);
MQLONG converted_value(const struct property *one, MQLONG type, struct writer *value);
size_t fixed_size(MQLONG type);

/* handles.c: the properties of a message handle, locked until release_message */
struct properties *message_of(MQHMSG hmsg);
void lock_messages(void);
void release_message(void);
void free_messages(MQHCONN hconn);

#endif
