#!/bin/sh
# Plays 20 messages against IBM MQ, and ends with PASS (status 0) or FAIL (status 1).
#
#   LICENSE=accept sh play.sh          IBM's image for developers, in docker or podman. LICENSE=accept says that you
#                                      accept IBM's license of that image: nobody else can do that for you.
#   sh play.sh --queue-manager NAME    a queue manager that the MQI's library here reaches by this name or by MQSERVER,
#                                      with the objects of play.mqsc beside this file; BRIDGE_USER and
#                                      BRIDGE_PASSWORD where it asks for them.
#
# Needed: trigmon with its extra bridge, and IBM's MQ client, its lib64 in LD_LIBRARY_PATH. The trigmon that is played
# with lives in a directory of its own, which is deleted at the end, as the container is.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
image=${IMAGE:-icr.io/ibm-messaging/mq:latest}
port=${PORT:-14140}
name=QM1
in_container=yes
if [ "${1:-}" = --queue-manager ] && [ -n "${2:-}" ]; then
    name=$2
    in_container=no
elif [ $# -gt 0 ]; then
    sed -n '2,12p' "$0" >&2
    exit 2
fi

work=$(mktemp -d)
run=
tool=
finish() {
    if [ -n "$run" ]; then kill "$run" 2>/dev/null || true; wait "$run" 2>/dev/null || true; fi
    if [ -n "$tool" ]; then "$tool" rm -f trigmon-play >/dev/null 2>&1 || true; fi
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
    echo "FAIL: $1"
    if [ -s "$work/run.log" ]; then tail -n 20 "$work/run.log" >&2; fi
    exit 1
}

mkdir -m 700 "$work/home" "$work/secrets"
user=${BRIDGE_USER:-}
password=${BRIDGE_PASSWORD:-}
server=
if [ $in_container = yes ]; then
    if [ "${LICENSE:-}" != accept ]; then
        echo "LICENSE=accept is needed: it says that you accept IBM's license of $image" >&2
        exit 2
    fi
    tool=$(command -v docker || command -v podman) || fail "neither docker nor podman is here"
    user=app
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    server="DEV.APP.SVRCONN/TCP/127.0.0.1($port)"
    MQ_APP_PASSWORD=$password "$tool" run -d --name trigmon-play -p "127.0.0.1:$port:1414" \
        -e LICENSE=accept -e MQ_QMGR_NAME=$name -e MQ_APP_PASSWORD \
        -v "$here/play.mqsc:/etc/mqm/90-trigmon-play.mqsc:ro" \
        -v "$here/play-rights.mqsc:/etc/mqm/91-trigmon-rights.mqsc:ro" "$image" >/dev/null || fail "$image did not start"
    tries=0
    until "$tool" exec trigmon-play chkmqready >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ $tries -lt 120 ] || fail "the queue manager of $image is not ready after two minutes"
        sleep 1
    done
fi

{
    echo "qmgr: {name: TRIGMON.PLAY}"
    echo "monitor: {secrets_directory: $work/secrets}"
    echo "bridges:"
    echo "  PLAY:"
    echo "    queue_manager: $name"
    [ -z "$server" ] || echo "    mqserver: $server"
    [ -z "$user" ] || { echo "    user: $user"; echo "    password_secret: play_password"; }
    echo "    initiation_queues: [TRIGMON.PLAY.INIT]"
} >"$work/trigmon.yaml"
if [ -n "$user" ]; then (umask 077 && printf '%s' "$password" >"$work/secrets/play_password"); fi
printf -- '- process: TRIGMON.PLAY\n  appl_id: /bin/true\n' >"$work/play.yaml"

TRIGMON_CONFIG="$work/trigmon.yaml"
export TRIGMON_CONFIG
trigmon bridge check PLAY || fail "the checks above"
TRIGMON_HOME="${TRIGMON_PLAY_HOME:-$work/home}" TRIGMON_QMGR=TRIGMON.PLAY trigmon run >"$work/run.log" 2>&1 &
run=$!
TRIGMON_HOME="${TRIGMON_PLAY_HOME:-$work/home}"
TRIGMON_QMGR=TRIGMON.PLAY
export TRIGMON_HOME TRIGMON_QMGR
tries=0
until trigmon status >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 60 ] || fail "trigmon did not start"
    kill -0 "$run" 2>/dev/null || fail "trigmon ended"
    sleep 0.5
done
trigmon apply "$work/play.yaml" || fail "the process could not be defined"
trigmon bridge check PLAY --play || fail "the play above"
echo PASS
