/* TLS 1.3 of a connection, as trigmon/tls/contexts.py and trigmon/client/tls.py have it: the server proves its name before
   anything is sent.

   OpenSSL never sees the socket: it reads from and writes to memory, and this file moves the bytes. So no write raises
   SIGPIPE, and the waiting is the library's own. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "address.h"
#include "callback.h"
#include "openssl.h"

#define MOVED 16384
#define HANDSHAKE_MS 10000

struct tls {
    const struct openssl *ssl;
    void *context;
    void *session;
    void *incoming;
    void *outgoing;
    int is_refused; /* TLS itself ended the link: no other try would mend it */
    uint8_t moved[MOVED];
};

void end_tls(struct connection *c) {
    if (c->tls == NULL) return;
    if (c->tls->session != NULL) c->tls->ssl->SSL_free(c->tls->session); /* and what it reads from and writes to */
    if (c->tls->context != NULL) c->tls->ssl->SSL_CTX_free(c->tls->context);
    free(c->tls);
    c->tls = NULL;
}

int tls_has_refused(const struct connection *c) {
    return c->tls != NULL && c->tls->is_refused;
}

/* Sends what OpenSSL has written. Returns 0 with errno where the link takes no more. */
static int flush(struct connection *c) {
    struct tls *tls = c->tls;
    for (int count; (count = tls->ssl->BIO_read(tls->outgoing, tls->moved, MOVED)) > 0;) {
        for (int sent = 0; sent < count;) {
            ssize_t more = send(c->link, tls->moved + sent, (size_t)(count - sent), MSG_NOSIGNAL);
            if (more < 0 && errno == EINTR) continue;
            if (more <= 0) return 0;
            sent += (int)more;
        }
    }
    return 1;
}

/* Waits for bytes and gives them to OpenSSL. Returns what recv(2) does. */
static ssize_t feed(struct connection *c) {
    for (;;) {
        ssize_t count = recv(c->link, c->tls->moved, MOVED, 0);
        if (count < 0 && errno == EINTR) continue;
        if (count > 0 && c->tls->ssl->BIO_write(c->tls->incoming, c->tls->moved, (int)count) != (int)count) {
            errno = ENOMEM;
            return -1;
        }
        return count;
    }
}

static MQLONG refuse(const struct connection *c, const char *about) {
    long result = c->tls->session ? c->tls->ssl->SSL_get_verify_result(c->tls->session) : 0;
    unsigned long last = c->tls->ssl->ERR_peek_last_error();
    const char *why = result ? c->tls->ssl->X509_verify_cert_error_string(result) : c->tls->ssl->ERR_reason_error_string(last);
    if (why == NULL) why = strerror(errno);
    report(about, (const uint8_t *)why, strlen(why));
    return MQRC_SSL_INITIALIZATION_ERROR;
}

/* A key with a passphrase is refused: nobody is asked for it at a terminal. */
static int no_passphrase(char *buffer, int size, int writes, void *user) {
    (void)buffer;
    (void)size;
    (void)writes;
    (void)user;
    return 0;
}

/* Tells where this client's own certificate has expired: the server's refusal may not arrive, or says nothing of it. */
static void report_expiry(const struct openssl *ssl, const void *context, const char *path) {
    const void *until = ssl->X509_get0_notAfter(ssl->SSL_CTX_get0_certificate(context));
    struct tm day;
    char why[64];
    if (ssl->X509_cmp_current_time(until) >= 0 || ssl->ASN1_TIME_to_tm(until, &day) != 1) return;
    size_t length = strftime(why, sizeof why, "this client's certificate expired on %Y-%m-%d", &day);
    report(path, (const uint8_t *)why, length);
}

static MQLONG make_context(struct connection *c, const struct place *place, int by_certificate) {
    struct tls *tls = c->tls;
    const struct openssl *ssl = tls->ssl;
    tls->context = ssl->SSL_CTX_new(ssl->TLS_client_method());
    if (tls->context == NULL) return refuse(c, "TLS");
    ssl->SSL_CTX_set_default_passwd_cb(tls->context, no_passphrase);
    ssl->SSL_CTX_set_verify(tls->context, VERIFY_PEER, NULL);
    if (ssl->SSL_CTX_ctrl(tls->context, SET_MIN_PROTO_VERSION, TLS_1_3, NULL) != 1) return refuse(c, "TLS 1.3");
    int is_trusted = place->authority[0] ? ssl->SSL_CTX_load_verify_file(tls->context, place->authority)
                                         : ssl->SSL_CTX_set_default_verify_paths(tls->context);
    if (is_trusted != 1) return refuse(c, place->authority);
    if (!by_certificate || place->certificate[0] == '\0') return MQRC_NONE;
    if (ssl->SSL_CTX_use_certificate_chain_file(tls->context, place->certificate) != 1) return refuse(c, place->certificate);
    report_expiry(ssl, tls->context, place->certificate);
    if (ssl->SSL_CTX_use_PrivateKey_file(tls->context, place->key, FILETYPE_PEM) != 1) return refuse(c, place->key);
    return MQRC_NONE;
}

/* Makes the session that expects this host's name, or its address, in the server's certificate. */
static int make_session(struct tls *tls, const struct place *place) {
    const struct openssl *ssl = tls->ssl;
    uint8_t number[16];
    char host[sizeof place->host];
    void *incoming = ssl->BIO_new(ssl->BIO_s_mem()), *outgoing = ssl->BIO_new(ssl->BIO_s_mem());
    tls->session = ssl->SSL_new(tls->context);
    if (tls->session == NULL || incoming == NULL || outgoing == NULL) {
        ssl->BIO_free(incoming);
        ssl->BIO_free(outgoing);
        return 0;
    }
    tls->incoming = incoming;
    tls->outgoing = outgoing;
    ssl->SSL_set_bio(tls->session, incoming, outgoing);
    ssl->SSL_set_connect_state(tls->session);
    ssl->SSL_set_hostflags(tls->session, NO_PARTIAL_WILDCARDS);
    strcpy(host, place->host);
    if (inet_pton(AF_INET, host, number) == 1 || inet_pton(AF_INET6, host, number) == 1)
        return ssl->X509_VERIFY_PARAM_set1_ip_asc(ssl->SSL_get0_param(tls->session), host) == 1;
    return ssl->SSL_set1_host(tls->session, host) == 1 && ssl->SSL_ctrl(tls->session, SET_TLSEXT_HOSTNAME, 0, host) == 1;
}

static MQLONG shake_hands(struct connection *c, const struct place *place) {
    struct tls *tls = c->tls;
    int64_t until_ms = monotonic_ms() + HANDSHAKE_MS;
    for (;;) {
        tls->ssl->ERR_clear_error();
        int done = tls->ssl->SSL_do_handshake(tls->session);
        int wanted = tls->ssl->SSL_get_error(tls->session, done);
        int is_sent = flush(c); /* also the alert that tells the other side why */
        if (done != 1 && wanted != WANT_READ) return refuse(c, place->host);
        if (!is_sent) return MQRC_Q_MGR_NOT_AVAILABLE;
        if (done == 1) return MQRC_NONE;
        if (feed(c) <= 0 || monotonic_ms() > until_ms) {
            static const char *why = "no handshake of TLS: it closed the connection, or is silent";
            report(place->host, (const uint8_t *)why, strlen(why));
            return MQRC_Q_MGR_NOT_AVAILABLE;
        }
    }
}

/* Begins TLS on a connected socket. Returns 2393 for files that cannot be used, and for a server that cannot prove its
   name; 2059 for one that does not answer. */
MQLONG begin_tls(struct connection *c, const struct place *place, int by_certificate) {
    const char *why;
    const struct openssl *ssl = load_openssl(&why);
    if (ssl == NULL) {
        report(place->host, (const uint8_t *)why, strlen(why));
        return MQRC_SSL_INITIALIZATION_ERROR;
    }
    c->tls = calloc(1, sizeof *c->tls);
    if (c->tls == NULL) return MQRC_STORAGE_NOT_AVAILABLE;
    c->tls->ssl = ssl;
    ssl->ERR_clear_error();
    MQLONG reason = make_context(c, place, by_certificate);
    if (reason == MQRC_NONE && !make_session(c->tls, place)) reason = refuse(c, place->host);
    return reason == MQRC_NONE ? shake_hands(c, place) : reason;
}

/* Receives as recv(2) does: 0 at the end, -1 with errno. */
ssize_t tls_receive(struct connection *c, void *bytes, size_t room) {
    struct tls *tls = c->tls;
    for (;;) {
        tls->ssl->ERR_clear_error();
        int count = tls->ssl->SSL_read(tls->session, bytes, room < INT32_MAX ? (int)room : INT32_MAX);
        if (count > 0) return count;
        int wanted = tls->ssl->SSL_get_error(tls->session, count);
        if (wanted == ZERO_RETURN) return 0;
        if (wanted != WANT_READ) {
            tls->is_refused = 1;
            refuse(c, "TLS");
            errno = EPROTO;
            return -1;
        }
        if (!flush(c)) return -1; /* what the protocol itself has to answer */
        ssize_t more = feed(c);
        if (more <= 0) return more;
    }
}

/* Sends all of it as send(2) does, or returns -1 with errno. */
ssize_t tls_send(struct connection *c, const void *bytes, size_t length) {
    struct tls *tls = c->tls;
    for (size_t sent = 0; sent < length;) {
        size_t part = length - sent < MOVED ? length - sent : MOVED;
        tls->ssl->ERR_clear_error();
        if (tls->ssl->SSL_write(tls->session, (const uint8_t *)bytes + sent, (int)part) != (int)part) {
            errno = EPROTO;
            return -1;
        }
        if (!flush(c)) return -1;
        sent += part;
    }
    return (ssize_t)length;
}
