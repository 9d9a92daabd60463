/* Where a queue manager may be reached. */
#ifndef TRIGMON_ADDRESS_H
#define TRIGMON_ADDRESS_H

#include "internal.h"

#define FILE_ROOM 512
#define MOST_PLACES 8
#define LONGEST_PASSWORD 1024 /* trigmon/tls/passwords.py */

/* A socket of this machine (``path``), or a host by TLS. What is not said is empty. */
struct place {
    char path[FILE_ROOM];
    char host[256];
    char port[6];
    char q_mgr_name[NAME_LENGTH + 1];
    char authority[FILE_ROOM];
    char certificate[FILE_ROOM];
    char key[FILE_ROOM];
    char user[256];
    char password_file[FILE_ROOM];
    char credential[256];
};

/* The places in the order in which they are tried. */
struct places {
    struct place all[MOST_PLACES];
    int count;
    int has_host; /* MQSERVER, a channel table or an MQCD named it: nothing there is 2538, else 2059 */
};

/* A user and a password, as the program gave them in an MQCSP or a file has them; wiped when they were sent. */
struct credentials {
    char user[LONGEST_PASSWORD + 1];
    char password[LONGEST_PASSWORD + 1];
};

/* address.c */
const char *environment(const char *name);
int find_socket(const char *name, char *path, size_t room);
int is_object_name(const char *name);
MQLONG default_name(char *name, size_t room);

/* places.c */
MQLONG find_places(const char *name, const MQCD *channel, const char *ccdt, struct places *places, char *expected);

/* tls_address.c */
int read_tls_address(const char *address, struct place *place);
int set_key(struct place *place, struct slice key, const char *value, const char *directory);
int is_sound(const struct place *place);

/* client_file.c: returns 1 for a name that the client's file has, 0 for none, -1 for a file that cannot be used */
int in_client_file(const char *name, struct places *places);

/* channel_table.c: writes ``host(port),...`` of the channels that a table has for a name; returns 0 where it has none */
int in_channel_table(const char *url, const char *name, char *hosts, size_t room);

/* credentials.c */
MQLONG read_csp(const MQCNO *options, const void *given, struct credentials *credentials);
MQLONG read_password(const struct place *place, struct credentials *credentials);

/* tcp.c */
int connect_tcp(const struct place *place);

/* tls.c */
MQLONG begin_tls(struct connection *connection, const struct place *place, int by_certificate);

#endif
