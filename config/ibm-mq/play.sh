#!/bin/sh
# Plays 20 messages against IBM MQ, and ends with PASS (status 0) or FAIL and why (status 1); 2 is a wrong call.
#
#   LICENSE=accept sh play.sh          IBM's image for developers, in docker or podman (TOOL names another one).
#                                      LICENSE=accept says that you accept IBM's license of that image: nobody else can
#                                      do that for you. IMAGE names another image, PORT another port of this machine.
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
if [ "${1:-}" = --queue-manager ] && [ -n "${2:-}" ] && [ $# -eq 2 ]; then
    name=$2
    in_container=no
elif [ $# -gt 0 ]; then
    sed -n '2,13p' "$0" >&2
    exit 2
fi
if [ $in_container = yes ] && [ "${LICENSE:-}" != accept ]; then
    echo "LICENSE=accept is needed: it says that you accept IBM's license of $image" >&2
    exit 2
fi

work=$(mktemp -d)
container=trigmon-play-$$
run=
tool=
started=
finish() {
    if [ -n "$run" ]; then kill "$run" 2>/dev/null || true; wait "$run" 2>/dev/null || true; fi
    if [ -n "$tool" ]; then "$tool" rm -f "$container" >/dev/null 2>&1 || true; fi
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
    if [ -n "$started" ]; then "$tool" logs --tail 20 "$container" >&2 || true; fi
    if [ -s "$work/run.log" ]; then tail -n 20 "$work/run.log" >&2; fi
    echo "FAIL: $1"
    exit 1
}

# Prints the first container tool that is here and has an answer from its daemon.
find_tool() {
    found=
    for each in ${TOOL:-docker podman}; do
        command -v "$each" >/dev/null || continue
        found="$found $each"
        if "$each" info >/dev/null 2>&1; then
            echo "$each"
            return
        fi
    done
    if [ -n "$found" ]; then why="no answer from${found} (info): is its daemon running?"; fi
    echo "${why:-there is no ${TOOL:-docker and no podman} here}" >"$work/why"
    return 1
}

command -v trigmon >/dev/null || fail "there is no trigmon on the PATH: pip install 'trigmon[bridge]'"
mkdir -m 700 "$work/home" "$work/secrets"
user=${BRIDGE_USER:-}
password=${BRIDGE_PASSWORD:-}
server=
if [ $in_container = yes ]; then
    tool=$(find_tool) || fail "$(cat "$work/why")"
    user=app
    password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    server="DEV.APP.SVRCONN/TCP/127.0.0.1($port)"
    # The image's own user reads these: the directory above them keeps all others of this machine out.
    mkdir -m 755 "$work/given"
    cp "$here/play.mqsc" "$here/play-rights.mqsc" "$work/given"
    printf '%s' "$password" >"$work/given/password"
    chmod 644 "$work"/given/*
    # The image takes the password from the file since 9.4, before from the variable.
    MQ_APP_PASSWORD=$password "$tool" run -d --name "$container" -p "127.0.0.1:$port:1414" \
        -e LICENSE=accept -e MQ_QMGR_NAME="$name" -e MQ_APP_PASSWORD \
        -v "$work/given/password:/run/secrets/mqAppPassword:ro,z" \
        -v "$work/given/play.mqsc:/etc/mqm/90-trigmon-play.mqsc:ro,z" \
        -v "$work/given/play-rights.mqsc:/etc/mqm/91-trigmon-rights.mqsc:ro,z" \
        "$image" >/dev/null || fail "$tool run of $image failed: see above; PORT=$port may be in use"
    started=yes
    tries=0
    until "$tool" exec "$container" chkmqready >/dev/null 2>&1; do
        tries=$((tries + 1))
        running=$("$tool" inspect -f '{{.State.Running}}' "$container" 2>/dev/null || true)
        [ "$running" = true ] || fail "the container of $image ended: see above"
        [ $tries -lt 120 ] || fail "the queue manager of $image is not ready after two minutes: see above"
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
trigmon bridge check PLAY || fail "a check above: its remedy stands below it"
TRIGMON_HOME="$work/home"
TRIGMON_QMGR=TRIGMON.PLAY
export TRIGMON_HOME TRIGMON_QMGR
trigmon run >"$work/run.log" 2>&1 &
run=$!
tries=0
until trigmon status >/dev/null 2>&1; do
    tries=$((tries + 1))
    kill -0 "$run" 2>/dev/null || fail "trigmon run ended: its log is above"
    [ $tries -lt 60 ] || fail "trigmon run does not answer after half a minute: its log is above"
    sleep 0.5
done
trigmon apply "$work/play.yaml" || fail "process TRIGMON.PLAY could not be defined: see above"
trigmon bridge check PLAY --play || fail "a step of the play above"
echo PASS
