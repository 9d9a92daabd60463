/* rate VERB COUNT: connects and disconnects, puts, or gets so often, and prints how many a second,
   and microseconds of its own CPU for each. */
#include <cmqc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static MQHCONN hconn;
static MQHOBJ hobj;
static MQLONG comp_code, reason;
static MQCHAR48 q_mgr = "QM1";

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void open_queue(void) {
    MQOD od = {{'O', 'D', ' ', ' '}, 1, MQOT_Q};
    strcpy(od.ObjectName, "RATE");
    MQCONN(q_mgr, &hconn, &comp_code, &reason);
    MQOPEN(hconn, &od, MQOO_OUTPUT | MQOO_INPUT_SHARED, &hobj, &comp_code, &reason);
}

static void put(MQLONG options) {
    static char data[1024];
    MQMD md = {{'M', 'D', ' ', ' '}, 1, .Expiry = -1, .Priority = -1, .MsgType = MQMT_DATAGRAM};
    MQPMO pmo = {{'P', 'M', 'O', ' '}, 1, MQPMO_NO_SYNCPOINT | options};
    MQPUT(hconn, hobj, &md, &pmo, sizeof data, data, &comp_code, &reason);
}

static void get(void) {
    static char data[1024];
    MQLONG length;
    MQMD md = {{'M', 'D', ' ', ' '}, 1};
    MQGMO gmo = {{'G', 'M', 'O', ' '}, 1, MQGMO_NO_SYNCPOINT};
    MQGET(hconn, hobj, &md, &gmo, sizeof data, data, &length, &comp_code, &reason);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    long count = atol(argv[2]);
    int connects = strcmp(argv[1], "connect") == 0;
    if (!connects) open_queue();
    double began = now();
    clock_t used = clock();
    for (long n = 0; n < count && comp_code == MQCC_OK; n++) {
        if (connects) {
            MQCONN(q_mgr, &hconn, &comp_code, &reason);
            MQDISC(&hconn, &comp_code, &reason);
        } else if (strcmp(argv[1], "get") == 0)
            get();
        else
            put(strcmp(argv[1], "async_put") == 0 ? MQPMO_ASYNC_RESPONSE : 0);
    }
    MQLONG ended = comp_code;
    if (!connects) MQDISC(&hconn, &comp_code, &reason); /* the last asynchronous puts are answered behind it */
    double cpu = (double)(clock() - used) / CLOCKS_PER_SEC;
    printf("%.1f %.2f\n", (double)count / (now() - began), cpu / (double)count * 1e6);
    return ended;
}
