/* A client channel definition table in JSON: which hosts it has for a queue manager. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

#define LONGEST_TABLE (1 << 20)

static const char *behind_blanks(const char *at) {
    return at + strspn(at, " \t\r\n");
}

static const char *behind_string(const char *at) {
    for (at++; *at != '\0' && *at != '"'; at++)
        if (*at == '\\' && at[1] != '\0') at++;
    return *at == '"' ? at + 1 : at;
}

/* Returns what is behind a value; a text that is no JSON ends somewhere, at its end at the latest. */
static const char *behind_value(const char *at) {
    int depth = 0;
    do {
        at = behind_blanks(at);
        if (*at == '"')
            at = behind_string(at);
        else if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else if (depth > 0 && (*at == ',' || *at == ':'))
            at++;
        else {
            size_t length = strcspn(at, ",:{}[]\" \t\r\n");
            if (length == 0) return at;
            at += length;
        }
    } while (depth > 0 && *at != '\0');
    return at;
}

/* Returns the value of a key of an object, or NULL. */
static const char *member(const char *object, const char *key) {
    if (object == NULL || *object != '{') return NULL;
    size_t length = strlen(key);
    const char *at = behind_blanks(object + 1);
    while (*at == '"') {
        const char *name = at + 1;
        at = behind_string(at);
        int is_it = strncmp(name, key, length) == 0 && name[length] == '"';
        at = behind_blanks(at);
        if (*at != ':') return NULL;
        at = behind_blanks(at + 1);
        if (is_it) return at;
        at = behind_blanks(behind_value(at));
        if (*at == ',') at = behind_blanks(at + 1);
    }
    return NULL;
}

/* Returns the element behind one of an array, the first for the array itself, or NULL at its end. */
static const char *next_element(const char *array, const char *one) {
    if (array == NULL || *array != '[') return NULL;
    const char *at = behind_blanks(one ? behind_value(one) : array + 1);
    if (one && *at != ',') return NULL;
    if (one) at = behind_blanks(at + 1);
    return *at == ']' || *at == '\0' ? NULL : at;
}

static int copy_text(const char *value, char *text, size_t room) {
    if (value == NULL || *value != '"') return 0;
    size_t length = strcspn(value + 1, "\"\\");
    if (value[1 + length] != '"' || length >= room) return 0;
    memcpy(text, value + 1, length);
    text[length] = '\0';
    return 1;
}

/* Adds ``host(port)`` for each connection of a channel; one without any means this machine. */
static void add_hosts(const char *client, char *hosts, size_t room) {
    const char *list = member(client, "connection"), *one = NULL;
    int count = 0;
    while ((one = next_element(list, one)) != NULL || count == 0) {
        char host[256] = "localhost";
        const char *port = one ? member(one, "port") : NULL;
        size_t length = strlen(hosts);
        if (one != NULL && !copy_text(member(one, "host"), host, sizeof host)) host[0] = '\0';
        int digits = port ? (int)strspn(port, "0123456789") : 0;
        int needed = snprintf(hosts + length, room - length, "%s%s(%.*s)", length ? "," : "", host, digits ? digits : 4, digits ? port : "1414");
        if (needed < 0 || (size_t)needed >= room - length) hosts[length] = '\0';
        count++;
        if (one == NULL) break;
    }
}

int in_channel_table(const char *url, const char *name, char *hosts, size_t room) {
    const char *path = strncmp(url, "file://", 7) == 0 ? url + 7 : url;
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? malloc(LONGEST_TABLE) : NULL;
    size_t length = text != NULL ? fread(text, 1, LONGEST_TABLE - 1, file) : 0;
    if (file != NULL) fclose(file);
    if (text == NULL) return 0;
    text[length] = '\0';
    hosts[0] = '\0';
    const char *channels = member(behind_blanks(text), "channel"), *one = NULL;
    while ((one = next_element(channels, one)) != NULL) {
        char q_mgr[NAME_LENGTH + 1] = "";
        const char *client = member(one, "clientConnection");
        if (client == NULL) continue;
        if (!copy_text(member(client, "queueManager"), q_mgr, sizeof q_mgr)) q_mgr[0] = '\0';
        if (strcmp(q_mgr, name) == 0) add_hosts(client, hosts, room);
    }
    free(text);
    return hosts[0] != '\0';
}
