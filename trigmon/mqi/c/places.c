/* Which places a program of MQ means: by a queue manager's name, MQSERVER, a channel table (JSON) or an MQCD. The rules of
   trigmon/mqi/queue_manager_address.py: a host of another machine is reached by TLS, and speaks trigmon's protocol. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "address.h"

#define LONGEST_LIST 4096

static MQLONG by_name(struct places *places, const char *name);

static int is_address(const char *text) {
    return strncmp(text, "unix:", 5) == 0 || strncmp(text, "tls:", 4) == 0 || strncmp(text, "tcp:", 4) == 0;
}

static void tell(const char *about, const char *why) {
    char shown[128];
    /* Behind the question mark are files, and of a wrong address nobody knows what. */
    snprintf(shown, sizeof shown, "%.*s", (int)strcspn(about, "?@"), about);
    report(shown, (const uint8_t *)why, strlen(why));
}

static MQLONG add_socket(struct places *places, const char *path) {
    struct place *place = &places->all[places->count];
    if (places->count == MOST_PLACES) return MQRC_NONE;
    if (path[0] == '\0' || strlen(path) >= sizeof place->path) return MQRC_Q_MGR_NAME_ERROR;
    *place = (struct place){0};
    strcpy(place->path, path);
    places->count++;
    return MQRC_NONE;
}

static MQLONG add_address(struct places *places, const char *address) {
    if (places->count == MOST_PLACES) return MQRC_NONE;
    if (strncmp(address, "unix:", 5) == 0) return add_socket(places, address + (strncmp(address, "unix://", 7) == 0 ? 7 : 5));
    struct place place = {0};
    int is_tls = strncmp(address, "tls:", 4) == 0;
    if (!is_tls || !read_tls_address(address, &place)) {
        tell(address, is_tls ? "this is not tls://host:port/NAME?key=value" : "an address here is unix: or tls:");
        return MQRC_Q_MGR_NAME_ERROR;
    }
    places->all[places->count++] = place;
    return MQRC_NONE;
}

/* Adds one part of a list; ``name`` is the queue manager of a list of hosts. */
typedef MQLONG add_part(struct places *places, char *part, const char *name);

/* Adds the parts of a list with commas between them, without blanks around; stops at the first that is wrong. An empty list
   is wrong too. */
static MQLONG add_each(struct places *places, const char *list, add_part *add, const char *name) {
    char text[LONGEST_LIST];
    MQLONG reason = MQRC_Q_MGR_NAME_ERROR;
    if (strlen(list) >= sizeof text) return reason;
    strcpy(text, list);
    for (char *rest = text, *each; (each = strsep(&rest, ",")) != NULL;) {
        each += strspn(each, " ");
        size_t length = strlen(each);
        while (length > 0 && each[length - 1] == ' ') each[--length] = '\0';
        if (length == 0) continue;
        reason = add(places, each, name);
        if (reason != MQRC_NONE) break;
    }
    return reason;
}

static MQLONG add_address_or_name(struct places *places, char *part, const char *name) {
    (void)name;
    return is_address(part) ? add_address(places, part) : by_name(places, part);
}

static MQLONG add_list(struct places *places, const char *list) {
    return add_each(places, list, add_address_or_name, "");
}

/* Adds the queue manager of a name: of this machine, else of the client's file, else where a monitor said that it is. */
static MQLONG by_name(struct places *places, const char *name) {
    char path[FILE_ROOM];
    if (is_address(name)) return add_list(places, name);
    if (!is_object_name(name)) return MQRC_Q_MGR_NAME_ERROR;
    if (find_socket(name, path, sizeof path)) return add_socket(places, path);
    int found = in_client_file(name, places);
    if (found != 0) return found > 0 ? MQRC_NONE : MQRC_Q_MGR_NAME_ERROR;
    /* A program that a monitor started has the address of its queue manager; the name that answers is looked at. */
    const char *named = environment("TRIGMON_QMGR");
    if (named != NULL && is_address(named)) return add_list(places, named);
    tell(name, "no queue manager of this machine has this name, and no client.ini says where it is");
    return places->has_host ? MQRC_HOST_NOT_AVAILABLE : MQRC_Q_MGR_NOT_AVAILABLE;
}

static MQLONG by_default(struct places *places) {
    char name[LONGEST_LIST];
    MQLONG reason = default_name(name, sizeof name);
    return reason != MQRC_NONE ? reason : add_list(places, name);
}

static int is_here(const char *host) {
    static const char *const loopback[] = {"localhost", "localhost.localdomain", "::1", "0.0.0.0", ""};
    char own[256] = "";
    for (size_t i = 0; i < sizeof loopback / sizeof loopback[0]; i++)
        if (strcasecmp(host, loopback[i]) == 0) return 1;
    gethostname(own, sizeof own - 1);
    return strncmp(host, "127.", 4) == 0 || strcasecmp(host, own) == 0;
}

static MQLONG add_host(struct places *places, const char *host, const char *port, const char *name) {
    if (is_address(host)) return add_address(places, host);
    struct places in_file = {0};
    int is_known = name[0] != '\0' && is_object_name(name) && in_client_file(name, &in_file) != 0;
    if (is_here(host) || is_known) return name[0] != '\0' ? by_name(places, name) : by_default(places);
    char address[400];
    int is_ipv6 = strchr(host, ':') != NULL;
    int length = snprintf(address, sizeof address, "tls://%s%s%s:%s/%s", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port, name);
    if (length >= (int)sizeof address) return MQRC_Q_MGR_NAME_ERROR;
    if (name[0] == '\0') address[length - 1] = '\0';
    return add_address(places, address);
}

/* Adds ``host(port)``, or an address of trigmon's in its place. */
static MQLONG add_host_and_port(struct places *places, char *part, const char *name) {
    char *port = is_address(part) ? NULL : strchr(part, '(');
    if (port != NULL) {
        *port++ = '\0';
        port += strspn(port, " ");
        port[strspn(port, "0123456789")] = '\0';
        if (port[0] == '\0') return MQRC_Q_MGR_NAME_ERROR;
    }
    part[strcspn(part, " ")] = '\0';
    return add_host(places, part, port ? port : "1414", name);
}

/* Returns the channel table that the program or its environment names. */
static const char *channel_table(const char *url, char *path, size_t room) {
    const char *directory = environment("MQCHLLIB"), *file = environment("MQCHLTAB"), *named = environment("MQCCDTURL");
    if (url != NULL && url[0] != '\0') return url;
    if (named != NULL) return named;
    if (file == NULL || strstr(file, ".json") == NULL) return NULL;
    snprintf(path, room, "%s%s%s", directory ? directory : "", directory ? "/" : "", file);
    return path;
}

/* Writes the hosts that the program names, as ``host(port),...``; empty where it names none. */
static MQLONG named_hosts(const MQCD *channel, const char *ccdt, const char *name, char *hosts, size_t room) {
    char path[1024];
    const char *server = environment("MQSERVER"), *table;
    hosts[0] = '\0';
    if (channel != NULL) {
        if (channel->Version < 1 || channel->Version > 13) return MQRC_CD_ERROR;
        if (channel->Version == 1) return MQRC_NONE;
        size_t length = field_length(channel->ConnectionName, sizeof channel->ConnectionName);
        memcpy(hosts, channel->ConnectionName, length);
        hosts[length] = '\0';
    } else if ((ccdt == NULL || ccdt[0] == '\0') && server != NULL) {
        for (int i = 0; i < 2 && strchr(server, '/') != NULL; i++) server = strchr(server, '/') + 1;
        if (strlen(server) >= room) return MQRC_Q_MGR_NAME_ERROR;
        strcpy(hosts, server);
    } else if ((table = channel_table(ccdt, path, sizeof path)) != NULL && !in_channel_table(table, name, hosts, room)) {
        tell(table, "this channel table cannot be read, or has no channel for the queue manager");
        return MQRC_Q_MGR_NAME_ERROR;
    }
    return MQRC_NONE;
}

/* Finds the places for the name that MQCONN was given, and the name that must answer there (empty: any). */
MQLONG find_places(const char *name, const MQCD *channel, const char *ccdt, struct places *places, char *expected) {
    char meant[NAME_LENGTH + 1], hosts[LONGEST_LIST];
    places->count = 0;
    strcpy(meant, name[0] == '*' ? name + 1 : name);
    if (meant[0] == '\0' && channel != NULL) name_of_field(meant, channel->QMgrName);
    strcpy(expected, name[0] == '*' || is_address(meant) ? "" : meant);
    MQLONG reason = named_hosts(channel, ccdt, meant, hosts, sizeof hosts);
    if (reason != MQRC_NONE) return reason;
    places->has_host = hosts[0] != '\0';
    if (places->has_host)
        reason = add_each(places, hosts, add_host_and_port, meant);
    else
        reason = meant[0] != '\0' ? by_name(places, meant) : by_default(places);
    return reason;
}
