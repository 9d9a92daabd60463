/* The functions of OpenSSL 3 that are called, by their names; they are looked up when a connection by TLS is made. */
#ifndef TRIGMON_OPENSSL_H
#define TRIGMON_OPENSSL_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int password_callback(char *buffer, int size, int writes, void *user);

#define OPENSSL_FUNCTIONS(X)                                                        \
    X(int, OPENSSL_init_ssl, (uint64_t, const void *))                              \
    X(const void *, TLS_client_method, (void))                                      \
    X(void *, SSL_CTX_new, (const void *))                                          \
    X(void, SSL_CTX_free, (void *))                                                 \
    X(long, SSL_CTX_ctrl, (void *, int, long, void *))                              \
    X(void, SSL_CTX_set_verify, (void *, int, void *))                              \
    X(void, SSL_CTX_set_default_passwd_cb, (void *, password_callback *))           \
    X(int, SSL_CTX_set_default_verify_paths, (void *))                              \
    X(int, SSL_CTX_load_verify_file, (void *, const char *))                        \
    X(int, SSL_CTX_use_certificate_chain_file, (void *, const char *))              \
    X(int, SSL_CTX_use_PrivateKey_file, (void *, const char *, int))                \
    X(const void *, SSL_CTX_get0_certificate, (const void *))                       \
    X(const void *, X509_get0_notAfter, (const void *))                             \
    X(int, X509_cmp_current_time, (const void *))                                   \
    X(int, ASN1_TIME_to_tm, (const void *, struct tm *))                            \
    X(void *, SSL_new, (void *))                                                    \
    X(void, SSL_free, (void *))                                                     \
    X(void, SSL_set_bio, (void *, void *, void *))                                  \
    X(void, SSL_set_connect_state, (void *))                                        \
    X(void, SSL_set_hostflags, (void *, unsigned))                                  \
    X(int, SSL_set1_host, (void *, const char *))                                   \
    X(void *, SSL_get0_param, (void *))                                             \
    X(long, SSL_ctrl, (void *, int, long, void *))                                  \
    X(int, SSL_do_handshake, (void *))                                              \
    X(int, SSL_read, (void *, void *, int))                                         \
    X(int, SSL_write, (void *, const void *, int))                                  \
    X(int, SSL_get_error, (const void *, int))                                      \
    X(long, SSL_get_verify_result, (const void *))                                  \
    X(int, X509_VERIFY_PARAM_set1_ip_asc, (void *, const char *))                   \
    X(const char *, X509_verify_cert_error_string, (long))                          \
    X(const void *, BIO_s_mem, (void))                                              \
    X(void *, BIO_new, (const void *))                                              \
    X(int, BIO_free, (void *))                                                      \
    X(int, BIO_read, (void *, void *, int))                                         \
    X(int, BIO_write, (void *, const void *, int))                                  \
    X(unsigned long, ERR_peek_last_error, (void))                                   \
    X(const char *, ERR_reason_error_string, (unsigned long))                       \
    X(void, ERR_clear_error, (void))

struct openssl {
#define X(result, name, arguments) result(*name) arguments;
    OPENSSL_FUNCTIONS(X)
#undef X
};

/* OpenSSL's numbers, as its manual pages have them. */
#define SET_MIN_PROTO_VERSION 123
#define SET_TLSEXT_HOSTNAME 55
#define TLS_1_3 0x0304
#define VERIFY_PEER 1
#define FILETYPE_PEM 1
#define WANT_READ 2
#define ZERO_RETURN 6
#define NO_PARTIAL_WILDCARDS 0x4u
#define INIT_NO_ATEXIT 0x00080000u

/* openssl.c: the functions, or NULL where OpenSSL 3 is not on this machine; ``why`` says what is missing */
const struct openssl *load_openssl(const char **why);

#endif
