/* The list of a message's properties. Names are as MQINQMP tells them: those of the folder usr without it. */
#include <stdlib.h>
#include <string.h>

#include "properties.h"

/* Returns whether a property has a name. "%" is any name, "folder.%" any of a folder. */
static int has_name(const struct property *one, const uint8_t *name, size_t length) {
    int is_any = name[length - 1] == '%' && (length == 1 || name[length - 2] == '.');
    size_t same = is_any ? length - 1 : length, size = strlen(one->name);
    if (is_any && same == 4 && memcmp(name, "usr.", 4) == 0)
        return strchr(one->name, '.') == NULL || strncmp(one->name, "usr.", 4) == 0;
    if (!is_any && same > 4 && memcmp(name, "usr.", 4) == 0) {
        name += 4;
        same -= 4;
    }
    return size >= same && memcmp(one->name, name, same) == 0 && (is_any || size == same);
}

/* Returns the first property of a name, from one on. */
struct property *find_from(struct property *one, const uint8_t *name, size_t length) {
    while (one != NULL && length > 0 && !has_name(one, name, length)) one = one->next;
    return length > 0 ? one : NULL;
}

struct property *find_property(struct properties *all, const uint8_t *name, size_t length) {
    return find_from(all->first, name, length);
}

/* Returns the first of the properties up to ``last`` whose stored name is this one. */
struct property *stored_property(struct properties *all, const struct property *last, const char *name) {
    for (struct property *one = last == NULL ? NULL : all->first; one != NULL; one = one == last ? NULL : one->next)
        if (strcmp(one->name, name) == 0) return one;
    return NULL;
}

/* Returns a name without the folder usr, as it is stored. */
struct slice within_usr(struct slice name) {
    if (name.length <= 4 || memcmp(name.bytes, "usr.", 4) != 0) return name;
    return (struct slice){name.bytes + 4, name.length - 4};
}

/* Adds a property behind another, or at the end. Returns NULL where there is no memory. */
struct property *add_property(struct properties *all, struct property *behind, const char *name, size_t name_length,
                              MQLONG type, const void *value, size_t length) {
    struct property *one = calloc(1, sizeof *one);
    char *copied = malloc(name_length + 1);
    uint8_t *bytes = malloc(length + 1);
    if (one == NULL || copied == NULL || bytes == NULL) {
        free(one);
        free(copied);
        free(bytes);
        return NULL;
    }
    memcpy(copied, name, name_length);
    copied[name_length] = '\0';
    if (length > 0) memcpy(bytes, value, length);
    bytes[length] = 0;
    if (behind == NULL) behind = all->last;
    struct property **at = behind ? &behind->next : &all->first;
    *one = (struct property){copied, type, bytes, length, *at};
    if (*at == NULL) all->last = one;
    *at = one;
    return one;
}

void remove_property(struct properties *all, struct property *one) {
    struct property **at = &all->first, *before = NULL;
    while (*at != NULL && *at != one) {
        before = *at;
        at = &before->next;
    }
    if (*at == NULL) return;
    *at = one->next;
    if (all->last == one) all->last = before;
    if (all->cursor == one) all->cursor = NULL;
    free(one->name);
    free(one->value);
    free(one);
}

void clear_properties(struct properties *all) {
    while (all->first != NULL) remove_property(all, all->first);
    all->cursor = NULL;
}

/* Copies properties; they take the place of those that have their names. Returns 0 where there is no memory. */
int copy_properties(struct properties *to, const struct properties *from) {
    for (struct property *one = from->first, *same; one != NULL; one = one->next)
        while ((same = stored_property(to, to->last, one->name)) != NULL) remove_property(to, same);
    for (struct property *one = from->first; one != NULL; one = one->next)
        if (!add_property(to, NULL, one->name, strlen(one->name), one->type, one->value, one->length)) return 0;
    return 1;
}

/* Moves properties behind those that are there, but for those of a name that is there already. */
void move_properties(struct properties *to, struct properties *from) {
    struct property *last = to->last, *one = from->first;
    from->first = from->last = from->cursor = NULL;
    for (struct property *next; one != NULL; one = next) {
        next = one->next;
        one->next = NULL;
        if (stored_property(to, last, one->name) != NULL) {
            free(one->name);
            free(one->value);
            free(one);
            continue;
        }
        if (to->last != NULL)
            to->last->next = one;
        else
            to->first = one;
        to->last = one;
    }
}
