/* An address of TLS, ``tls://host:port/NAME?key=value&...``: the rules of trigmon/client/tls.py. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define DEFAULT_PORT "1415"

static const struct {
    const char *name;
    size_t offset;
    size_t room;
    int is_file;
} keys[] = {
    {"authority", offsetof(struct place, authority), FILE_ROOM, 1},
    {"certificate", offsetof(struct place, certificate), FILE_ROOM, 1},
    {"key", offsetof(struct place, key), FILE_ROOM, 1},
    {"password_file", offsetof(struct place, password_file), FILE_ROOM, 1},
    {"user", offsetof(struct place, user), 256, 0},
    {"credential", offsetof(struct place, credential), 256, 0},
};

/* Sets what a key says; a relative file starts from a directory, where one is given. Returns 0 for no key, or no room. */
int set_key(struct place *place, struct slice key, const char *value, const char *directory) {
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (strlen(keys[i].name) != key.length || memcmp(keys[i].name, key.bytes, key.length) != 0) continue;
        int is_below = directory != NULL && keys[i].is_file && value[0] != '\0' && value[0] != '/';
        char *field = (char *)place + keys[i].offset;
        int needed = snprintf(field, keys[i].room, "%s%s%s", is_below ? directory : "", is_below ? "/" : "", value);
        return needed >= 0 && (size_t)needed < keys[i].room;
    }
    return 0;
}

/* A certificate needs its key and a user a password, and each the other way round. */
int is_sound(const struct place *place) {
    int has_password = place->password_file[0] != '\0' || place->credential[0] != '\0';
    return !place->certificate[0] == !place->key[0] && !place->user[0] == !has_password;
}

static int hexadecimal(char digit) {
    const char *all = "0123456789abcdef", *found = digit ? strchr(all, digit >= 'A' && digit <= 'F' ? digit | 0x20 : digit) : NULL;
    return found ? (int)(found - all) : -1;
}

/* Decodes a value of a query. Returns 0 where there is no room. */
static int decoded(const char *text, size_t length, char *value, size_t room) {
    size_t out = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i] == '+' ? ' ' : text[i];
        if (c == '%' && i + 2 < length && hexadecimal(text[i + 1]) >= 0 && hexadecimal(text[i + 2]) >= 0) {
            c = (char)(hexadecimal(text[i + 1]) << 4 | hexadecimal(text[i + 2]));
            i += 2;
        }
        if (out + 1 >= room || c == '\0') return 0;
        value[out++] = c;
    }
    value[out] = '\0';
    return 1;
}

static int read_query(const char *query, struct place *place) {
    while (*query != '\0') {
        char value[FILE_ROOM];
        size_t length = strcspn(query, "&"), name = strcspn(query, "=&");
        if (length > 0) {
            size_t start = name < length ? name + 1 : length;
            if (!decoded(query + start, length - start, value, sizeof value)) return 0;
            if (!set_key(place, (struct slice){(const uint8_t *)query, name}, value, NULL)) return 0;
        }
        query += length + (query[length] == '&');
    }
    return is_sound(place);
}

static int read_port(const char *text, size_t length, char *port) {
    if (length == 0 || length > 5 || strspn(text, "0123456789") < length) return 0;
    memcpy(port, text, length);
    port[length] = '\0';
    long number = strtol(port, NULL, 10);
    return number > 0 && number < 65536;
}

/* Reads an address into an empty place. Returns 0 for one that is none. */
int read_tls_address(const char *address, struct place *place) {
    const char *rest = address + strlen("tls:");
    if (strncmp(rest, "//", 2) == 0) rest += 2;
    size_t length = strcspn(rest, "?"), of_host = strcspn(rest, "/?");
    size_t of_name = length > of_host ? length - of_host - 1 : 0;
    if (memchr(rest, '@', length) != NULL || of_name > NAME_LENGTH) return 0;
    memcpy(place->q_mgr_name, rest + of_host + (of_name > 0), of_name);
    if (of_name > 0 && !is_object_name(place->q_mgr_name)) return 0;
    const char *bracket = memchr(rest, ']', of_host), *begin = bracket ? bracket : rest;
    const char *colon = memrchr(begin, ':', (size_t)(rest + of_host - begin));
    size_t until_port = colon ? (size_t)(colon - rest) : of_host;
    strcpy(place->port, DEFAULT_PORT);
    if (colon && !read_port(colon + 1, of_host - until_port - 1, place->port)) return 0;
    if (rest[0] == '[' && bracket) {
        rest++;
        until_port = (size_t)(bracket - rest);
    }
    if (until_port == 0 || until_port >= sizeof place->host) return 0;
    memcpy(place->host, rest, until_port);
    const char *query = strchr(address, '?');
    return query == NULL || read_query(query + 1, place);
}
