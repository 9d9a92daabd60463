/* Takes messages under syncpoint, puts each to another queue, and commits; a test kills it at any moment.

   crash FROM TO: writes a dot for each MQGET, so that the test knows that it is between MQGET and MQCMIT or near. */
#include <cmqc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static MQHOBJ opened(MQHCONN hconn, const char *name, MQLONG options) {
    MQOD od = {{'O', 'D', ' ', ' '}, 1, MQOT_Q};
    MQHOBJ hobj;
    MQLONG comp_code, reason;
    strncpy(od.ObjectName, name, sizeof od.ObjectName);
    MQOPEN(hconn, &od, options, &hobj, &comp_code, &reason);
    return comp_code == MQCC_OK ? hobj : MQHO_UNUSABLE_HOBJ;
}

int main(int argc, char **argv) {
    MQHCONN hconn;
    MQLONG comp_code, reason, length;
    MQCHAR48 q_mgr = "QM1";
    char data[100];
    if (argc != 3) return 2;
    MQCONN(q_mgr, &hconn, &comp_code, &reason);
    if (comp_code == MQCC_FAILED) return 3;
    MQHOBJ from = opened(hconn, argv[1], MQOO_INPUT_SHARED), to = opened(hconn, argv[2], MQOO_OUTPUT);
    for (;;) {
        MQMD md = {{'M', 'D', ' ', ' '}, 1, .Expiry = -1, .Priority = -1, .Persistence = 2, .MsgType = MQMT_DATAGRAM};
        MQGMO gmo = {{'G', 'M', 'O', ' '}, 1, MQGMO_SYNCPOINT | MQGMO_WAIT, 1000};
        MQPMO pmo = {{'P', 'M', 'O', ' '}, 1, MQPMO_SYNCPOINT};
        MQGET(hconn, from, &md, &gmo, sizeof data, data, &length, &comp_code, &reason);
        if (reason == MQRC_NO_MSG_AVAILABLE) break;
        if (comp_code != MQCC_OK) return 4;
        if (write(1, ".", 1) != 1) return 5;
        MQPUT(hconn, to, &md, &pmo, length, data, &comp_code, &reason);
        if (comp_code != MQCC_OK) return 6;
        MQCMIT(hconn, &comp_code, &reason);
        if (comp_code != MQCC_OK) return 7;
    }
    MQDISC(&hconn, &comp_code, &reason);
    return comp_code;
}
