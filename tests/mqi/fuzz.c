/* Calls the library with mutated structures, and answers it with mutated replies, for a build with sanitizers.

   fuzz SEED COUNT, with TRIGMON_RUNTIME a directory for the socket of the queue manager that this program plays. Each
   structure lies in a block exactly as long as its version says, so that a byte too far is seen. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "address.h"
#include "properties.h"

static __thread uint64_t state;

static uint32_t chance(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 11) % below;
}

static void mutate(uint8_t *bytes, size_t length, uint32_t most) {
    for (uint32_t n = chance(most + 1); n > 0 && length > 0; n--) {
        uint8_t *at = bytes + chance((uint32_t)length);
        static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xc0, 0xc4, 0xc6, 0xd9, 0xdb, 0xdd, 0xdf, 0xff};
        *at = chance(2) ? edges[chance(sizeof edges)] : (uint8_t)chance(256);
    }
}

/* -- the queue manager ------------------------------------------------------------------------------------------ */

static int read_whole(int link, uint8_t *bytes, size_t length) {
    for (size_t have = 0; have < length;) {
        ssize_t count = read(link, bytes + have, length - have);
        if (count <= 0) return 0;
        have += (size_t)count;
    }
    return 1;
}

static const char rfh2[] =
    "RFH \2\0\0\0\130\0\0\0\"\2\0\0\270\4\0\0MQSTR   \0\0\0\0\270\4\0\0\060\0\0\0<usr><a dt='i4'>5</a><b>x&amp;y</b><c/></usr>      body";

static void write_got(struct writer *w) {
    MQMD md = {.Version = 2, .Encoding = 546};
    int has_header = chance(2) == 0;
    const char *data = has_header ? rfh2 : "some text \303\274";
    size_t length = has_header ? sizeof rfh2 - 1 : strlen(data);
    write_array(w, 7);
    write_text(w, "was_got", 7);
    write_int(w, chance(8) ? 0 : 2080);
    write_descriptor(w, &md, 1208, has_header ? "MQHRF2  " : "MQSTR   ", 546);
    write_binary(w, data, length);
    write_int(w, (int64_t)length);
    write_text(w, " ", 1);
    write_text(w, " ", 1);
}

static void write_values(struct writer *w) {
    write_array(w, 3);
    write_text(w, "values", 6);
    write_int(w, 0);
    write_map(w, 3);
    write_text(w, "name", 4);
    write_text(w, "QUEUE", 5);
    write_text(w, "current_q_depth", 15);
    write_int(w, 7);
    write_text(w, "inhibit_get", 11);
    write_text(w, "allowed", 7);
}

static void write_reply(struct writer *w, const char *tag, int64_t sequence) {
    MQBYTE24 id = {1};
    write_array(w, 2);
    write_int(w, sequence);
    if (chance(16) == 0) {
        write_array(w, 4);
        write_text(w, "refused", 7);
        write_int(w, 0);
        write_int(w, 2033);
        write_text(w, "about", 5);
    } else if (strcmp(tag, "open") == 0) {
        write_array(w, 4);
        write_text(w, "opened", 6);
        write_int(w, 0);
        write_int(w, 11);
        write_text(w, "QUEUE", 5);
    } else if (strcmp(tag, "put") == 0) {
        write_array(w, 10);
        write_text(w, "was_put", 7);
        write_int(w, 0);
        write_binary(w, id, 24);
        write_binary(w, id, 24);
        for (int i = 0; i < 3; i++) write_int(w, 1);
        write_binary(w, id, 24);
        write_int(w, 1);
        write_int(w, 0);
    } else if (strcmp(tag, "get") == 0)
        write_got(w);
    else if (strcmp(tag, "inquire") == 0)
        write_values(w);
    else {
        write_array(w, 2);
        write_text(w, "done", 4);
        write_int(w, 0);
    }
}

static void write_welcome(struct writer *w) {
    write_array(w, 7);
    write_text(w, "welcome", 7);
    write_int(w, 1);
    write_text(w, "QM1", 3);
    write_text(w, "0", 1);
    write_int(w, 0);
    write_int(w, 4259840);
    write_int(w, 0);
}

/* Sends what was written as a frame. Returns 0 where the link is to end behind it. */
static int send_mutated(int link, struct writer *w, uint32_t one_of) {
    int goes_on = 1;
    uint32_t length = (uint32_t)w->length;
    if (chance(one_of) == 0) mutate(w->bytes, w->length, 4);
    if (chance(50) == 0) {
        length = chance(2) ? chance(length + 100) : (uint32_t)state;
        goes_on = 0;
    }
    uint8_t head[] = {(uint8_t)(length >> 24), (uint8_t)(length >> 16), (uint8_t)(length >> 8), (uint8_t)length};
    return send(link, head, 4, MSG_NOSIGNAL) == 4 && send(link, w->bytes, w->length, MSG_NOSIGNAL) > 0 && goes_on;
}

static void serve(int link, struct writer *w) {
    static uint8_t body[1 << 16];
    uint8_t head[4];
    for (int calls = 0, goes_on = 1; goes_on && read_whole(link, head, 4); calls++) {
        uint32_t length = (uint32_t)head[2] << 8 | head[3];
        if (head[0] || head[1] || !read_whole(link, body, length)) abort(); /* a frame that is none */
        struct reader r = {body, body + length, 0};
        w->length = 0;
        if (calls == 0)
            write_welcome(w);
        else {
            char tag[24] = "";
            read_array(&r);
            int64_t sequence = read_int(&r);
            read_array(&r);
            struct slice name = read_text(&r);
            if (r.failed || sequence != calls || name.length >= sizeof tag) abort();
            memcpy(tag, name.bytes, name.length);
            write_reply(w, tag, sequence);
        }
        goes_on = send_mutated(link, w, calls == 0 ? 20 : 3);
    }
    close(link);
}

static void *play(void *listener) {
    struct writer w = {0};
    state = 88172645463325252ULL;
    for (int link; (link = accept(*(int *)listener, NULL, NULL)) >= 0;) serve(link, &w);
    free(w.bytes);
    return NULL;
}

static int listen_at(const char *directory) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/QM1", directory);
    mkdir(address.sun_path, 0700);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/QM1/mq.sock", directory);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 16) != 0) exit(2);
    return listener;
}

/* -- the program ------------------------------------------------------------------------------------------------ */

/* Makes a block of a structure, mutated; as long as its version says, which may be none. */
static void *block(const void *whole, size_t size, const size_t *lengths, MQLONG versions) {
    uint8_t bytes[512];
    MQLONG version = 1 + (MQLONG)chance((uint32_t)versions);
    memcpy(bytes, whole, size);
    memcpy(bytes + 4, &version, 4);
    if (chance(2)) mutate(bytes, chance(4) ? size : 8, 6);
    memcpy(&version, bytes + 4, 4);
    size_t length = version >= 1 && version <= versions ? lengths[version] : 8;
    void *made = malloc(length);
    memcpy(made, bytes, length);
    return made;
}

static const size_t of_md[] = {0, 324, 364}, of_od[] = {0, 168, 208, 344, 424}, of_pmo[] = {0, 128, 160, 184};
static const size_t of_gmo[] = {0, 72, 80, 112 - 12, 112}, of_sts[] = {0, 224, 280}, of_12[] = {0, 12}, of_20[] = {0, 20}, of_24[] = {0, 24};
static MQHCONN hconn;
static MQHOBJ hobj;
static MQHMSG hmsg;
static MQLONG comp_code, reason;

static void put_or_get(int gets) {
    MQMD md = {.StrucId = {'M', 'D', ' ', ' '}, .CodedCharSetId = chance(2) ? 1200 : 37, .Encoding = 546};
    MQPMO pmo = {.StrucId = {'P', 'M', 'O', ' '}, .OriginalMsgHandle = chance(2) ? hmsg : 0};
    MQGMO gmo = {.StrucId = {'G', 'M', 'O', ' '}, .Options = chance(2) ? MQGMO_CONVERT : 0, .MsgHandle = chance(2) ? hmsg : 0};
    MQLONG length = (MQLONG)chance(200), found;
    void *given = block(&md, sizeof md, of_md, 2);
    void *options = gets ? block(&gmo, sizeof gmo, of_gmo, 4) : block(&pmo, sizeof pmo, of_pmo, 3);
    char *buffer = calloc(1, (size_t)length + 1);
    if (gets)
        MQGET(hconn, hobj, given, options, length, buffer, &found, &comp_code, &reason);
    else
        MQPUT(hconn, hobj, given, options, length, buffer, &comp_code, &reason);
    free(buffer);
    free(options);
    free(given);
}

static void open_or_close(void) {
    MQOD od = {.StrucId = {'O', 'D', ' ', ' '}, .ObjectType = MQOT_Q, .ObjectName = "QUEUE"};
    if (chance(4) == 0) MQCLOSE(hconn, &hobj, 0, &comp_code, &reason);
    void *given = block(&od, sizeof od, of_od, 4);
    MQOPEN(hconn, given, 0x7f, &hobj, &comp_code, &reason);
    free(given);
}

static void use_attributes(void) {
    MQLONG selectors[] = {2016, 3, (MQLONG)chance(4100), 9}, numbers[4] = {0};
    char *text = calloc(1, 100);
    MQINQ(hconn, hobj, 1 + (MQLONG)chance(4), selectors, (MQLONG)chance(4), numbers, (MQLONG)chance(100), text, &comp_code, &reason);
    MQSET(hconn, hobj, 1 + (MQLONG)chance(4), selectors, (MQLONG)chance(4), numbers, (MQLONG)chance(100), text, &comp_code, &reason);
    MQSTS status = {.StrucId = {'S', 'T', 'A', 'T'}};
    void *given = block(&status, sizeof status, of_sts, 2);
    MQSTAT(hconn, (MQLONG)chance(3), given, &comp_code, &reason);
    free(given);
    free(text);
}

static void use_properties(void) {
    MQSMPO set = {.StrucId = {'S', 'M', 'P', 'O'}, .ValueCCSID = MQCCSI_APPL};
    MQPD pd = {.StrucId = {'P', 'D', ' ', ' '}};
    MQIMPO inquired = {{'I', 'M', 'P', 'O'}, 1, (MQLONG)chance(64), 546, -3, 546, 0, 0, {0}, {0}};
    char *name = strdup("usr.some.%name"), *value = calloc(1, 32);
    MQLONG type = 1 << chance(12), length;
    mutate((uint8_t *)name, strlen(name), 2);
    mutate((uint8_t *)value, 32, 8);
    MQCHARV of_name = {name, 0, 0, (MQLONG)chance(14), 1208};
    void *options = block(&set, sizeof set, of_20, 1), *description = block(&pd, sizeof pd, of_24, 1);
    MQSETMP(hconn, hmsg, options, &of_name, description, type, (MQLONG)chance(32), value, &comp_code, &reason);
    MQINQMP(hconn, hmsg, &inquired, &of_name, description, &type, (MQLONG)chance(32), value, &length, &comp_code, &reason);
    free(options);
    free(description);
    if (chance(3) == 0) {
        MQDMPO deleted = {{'D', 'M', 'P', 'O'}, 1, 0};
        options = block(&deleted, sizeof deleted, of_12, 1);
        MQDLTMP(hconn, hmsg, options, &of_name, &comp_code, &reason);
        free(options);
    }
    free(name);
    free(value);
}

/* Reads mutated headers and texts by themselves: most of what is wrong with a reply never comes so far. */
static void read_bytes(void) {
    struct properties all = {0};
    struct writer converted = {0};
    MQRFH2 header;
    size_t length = sizeof rfh2 - 1;
    static const MQLONG sets[] = {1208, 819, 1200, 1202, 37, 500, 1047, 13488};
    uint8_t *bytes = malloc(length);
    memcpy(bytes, rfh2, length);
    mutate(bytes, length, 6);
    read_rfh2(bytes, length, 546, &all, &header);
    convert_text(sets[chance(8)], bytes, chance((uint32_t)length), sets[chance(8)], &converted, (int)chance(2));
    struct reader r = {bytes, bytes + length, 0};
    while (!r.failed && r.at < r.end) skip_value(&r);
    clear_properties(&all);
    free(converted.bytes);
    free(bytes);
}

/* Writes a text, mutated, into a file of the directory for the socket; returns its path. */
static const char *file_with(const char *text) {
    static char path[600];
    char *bytes = strdup(text);
    mutate((uint8_t *)bytes, strlen(text), 6);
    snprintf(path, sizeof path, "%s/file", getenv("TRIGMON_RUNTIME"));
    FILE *file = fopen(path, "w");
    fwrite(bytes, 1, strlen(text), file);
    fclose(file);
    free(bytes);
    return path;
}

/* Reads mutated addresses of TLS, client's files and channel tables. */
static void read_addresses(void) {
    static const char *const addresses[] = {"tls://[::1]:1415/QM1?authority=%2Fa%20b&certificate=c&key=k", "tls:h?user=u&credential=c"};
    static const char ini[] = "[QM1]\naddress = tls://a,\n tls://b:1/QM1?user=u&password_file=f\nauthority: ca.crt\n[QM2]\nkey = k\n";
    static const char json[] = "{\"channel\": [{\"name\": \"A\", \"clientConnection\": {\"connection\": [{\"host\": \"h\", \"port\": 1}], "
                               "\"queueManager\": \"QM1\"}}, {\"clientConnection\": {\"queueManager\": \"QM1\"}}]}";
    char *text = strdup(addresses[chance(2)]), hosts[64];
    struct place *place = calloc(1, sizeof *place);
    mutate((uint8_t *)text + 4, strlen(text) - 4, 6);
    read_tls_address(text, place);
    free(text);
    free(place);
    if (chance(8)) return;
    struct places *places = calloc(1, sizeof *places);
    setenv("TRIGMON_CLIENT_FILE", file_with(ini), 1);
    in_client_file("QM1", places);
    unsetenv("TRIGMON_CLIENT_FILE");
    free(places);
    in_channel_table(file_with(json), "QM1", hosts, sizeof hosts);
}

/* Connects with a user and a password, of lengths that may be none. */
static void connect_by_csp(PMQCHAR name) {
    static char texts[2][1200];
    MQCSP csp = {{'C', 'S', 'P', ' '}, 1, 1};
    MQCNO cno = {{'C', 'N', 'O', ' '}, 5, .SecurityParmsPtr = &csp};
    mutate((uint8_t *)&csp, 12, 1);
    csp.CSPUserIdPtr = chance(8) ? texts[0] : NULL;
    csp.CSPPasswordPtr = texts[1];
    csp.CSPUserIdLength = (MQLONG)chance(1100) - 20;
    csp.CSPPasswordLength = (MQLONG)chance(1100) - 20;
    MQCONNX(name, &cno, &hconn, &comp_code, &reason);
}

static void connect_anew(void) {
    MQCHAR48 name = "QM1";
    MQCMHO options = {{'C', 'M', 'H', 'O'}, 1, 0};
    MQDMHO deleted = {{'D', 'M', 'H', 'O'}, 1, 0};
    if (hconn != MQHC_UNUSABLE_HCONN) MQDISC(&hconn, &comp_code, &reason);
    MQDLTMH(MQHC_UNASSOCIATED_HCONN, &hmsg, &deleted, &comp_code, &reason);
    if (chance(4) == 0) connect_by_csp(name);
    if (hconn == MQHC_UNUSABLE_HCONN) MQCONN(name, &hconn, &comp_code, &reason);
    MQCRTMH(MQHC_UNASSOCIATED_HCONN, &options, &hmsg, &comp_code, &reason);
    open_or_close();
}

static void step(void) {
    /* A link that a reply has broken answers with the same reason from then on. */
    static MQLONG before;
    if (hconn == MQHC_UNUSABLE_HCONN || reason == MQRC_CONNECTION_BROKEN || (comp_code && reason == before) || chance(40) == 0)
        connect_anew();
    before = comp_code ? reason : 0;
    switch (chance(8)) {
        case 0: open_or_close(); break;
        case 1: use_attributes(); break;
        case 2: use_properties(); break;
        case 3: MQCMIT(hconn, &comp_code, &reason); break;
        case 4: chance(2) ? read_bytes() : read_addresses(); break;
        default: put_or_get((int)chance(3)); break;
    }
    if (chance(50) == 0) {
        MQDMHO options = {{'D', 'M', 'H', 'O'}, 1, 0};
        MQDLTMH(hconn, &hmsg, &options, &comp_code, &reason);
    }
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int listener = listen_at(getenv("TRIGMON_RUNTIME"));
    pthread_t manager;
    pthread_create(&manager, NULL, play, &listener);
    hconn = MQHC_UNUSABLE_HCONN;
    state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
    long count = atol(argv[2]);
    for (long n = 0; n < count; n++) step();
    MQDISC(&hconn, &comp_code, &reason);
    printf("%ld\n", count);
    fflush(stdout);
    _exit(0);
}
