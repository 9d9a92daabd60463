"""No placeholder is a program, its options or its text, whatever stands before it; behind a script it is data."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.in_process import InProcess
from trigmon.launch.launch_plan import LaunchError, Order
from trigmon.launch.unix import arguments
from trigmon.mq.attributes import Process
from trigmon.mq.calls import Define
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.errors import AttrValueError
from trigmon.rules.runs.code_words import code_from_outside

X = "{trigdata}"
REFUSED = r"""
pwsh {trigdata}
pwsh -c {trigdata}
pwsh -Command 'Get-Item $args' {trigdata}
pwsh -NoProfile -com x {trigdata}
pwsh -EncodedCommand {trigdata}
pwsh -ep Bypass -File {trigdata}
pwsh -Command x -File y.ps1 {trigdata}
pwsh-7.4 -wd /tmp -Command {trigdata}
nice powershell -Command x {trigdata}
dotnet {trigdata}
dotnet exec {trigdata}
dotnet fsi --exec {trigdata}
dotnet run --project {trigdata}
dotnet build /p:PreBuildEvent={trigdata}
tool dotnet fsi {trigdata}
timeout 5 sh -c 'x {trigdata}'
nice sh -c '{trigdata}'
setsid bash -c "{trigdata}"
env -S {trigdata}
env -S 'sh -c' {trigdata}
env --split-string={trigdata}
env {trigdata} prog
env PATH={trigdata} prog
env LD_PRELOAD={trigdata} prog
env A=b {trigdata}
env -i -u HOME A=b sh {trigdata}
xargs sh -c {trigdata}
xargs {trigdata}
xargs -n 1 -I % {trigdata}
python -c {trigdata}
python3.11 -c {trigdata}
python3 -Ic{trigdata}
python3 -m {trigdata}
python3 {trigdata}
/usr/bin/python3 -W ignore {trigdata}
perl -e {trigdata}
perl -lane {trigdata}
perl -M{trigdata} -e 1
perl -e 1 -e {trigdata}
perl5.36 {trigdata}
node -e {trigdata}
node --eval={trigdata}
node --require {trigdata} a.js
ruby -e {trigdata}
ruby -r{trigdata} a.rb
php -r {trigdata}
php -d auto_prepend_file={trigdata} a.php
lua -e {trigdata}
lua5.4 -l {trigdata} a.lua
Rscript -e {trigdata}
julia -E {trigdata}
deno eval {trigdata}
deno run {trigdata}
awk {trigdata}
awk -f {trigdata} x
gawk -e {trigdata} x
awk -v {trigdata} '{print}'
sed {trigdata} file
sed -n -e {trigdata} file
find . -exec {trigdata} ;
find . -execdir sh -c {trigdata} ;
find . -name x -ok env {trigdata} ;
ssh host {trigdata}
ssh {trigdata} uptime
ssh -o ProxyCommand={trigdata} host
sudo {trigdata}
sudo -u bob {trigdata}
sudo -nu bob {trigdata}
sudo --user bob -- {trigdata}
sudo --user=bob A=b sh -c {trigdata}
sudo -u {trigdata} prog
doas -u bob {trigdata}
su -c {trigdata}
su - bob -c 'x {trigdata}'
su bob {trigdata}
runuser -u bob -- {trigdata}
runuser bob -c {trigdata}
flock /tmp/l -c {trigdata}
flock -w 5 /tmp/l {trigdata}
watch -n 5 load {trigdata}
parallel load {trigdata}
script -c {trigdata}
script -qec {trigdata} /dev/null
strace -f -o out {trigdata}
busybox sh -c {trigdata}
bash -lc {trigdata}
bash --rcfile={trigdata} -i x
bash --rcfile {trigdata}
zsh -e +x -c {queue}
setpriv --reuid bob --clear-groups {trigdata}
systemd-run --unit a -p User=b {trigdata}
docker exec box {trigdata}
docker run --rm -v a:b image sh -c {trigdata}
kubectl exec pod -- {trigdata}
make {trigdata}
git -c core.pager={trigdata} log
git -c {trigdata} log
rsync -e {trigdata} a b
rsync --rsh={trigdata} a b
tar -I {trigdata} -cf a b
tar --to-command={trigdata} -xf a
tar --checkpoint-action=exec={trigdata} -cf a b
vim -c {trigdata} a
vim +{trigdata} a
psql -c {trigdata}
java -cp {trigdata} Main
java -jar {trigdata}
java -XX:OnError={trigdata} Main
java -Xmx2g {trigdata}
spark-submit --conf spark.driver.extraJavaOptions={trigdata} a.py
spark-submit --conf {trigdata} a.py
/opt/wrap --fast sh -c {trigdata}
/opt/wrap -- sudo -u bob {trigdata}
/opt/wrap -c {trigdata}
/opt/wrap -e{trigdata}
/opt/wrap --command={trigdata}
python3 wrap.py bash -ec {trigdata}
nice -n 5 ionice -c 2 timeout -k 5 9 stdbuf -oL env A=b nohup bash -c {trigdata}
timeout {trigdata} prog
chroot /srv {trigdata}
chroot /srv python3 -c {trigdata}
env --split 'sh -c' {trigdata}
timeout --sig KILL 5 {trigdata}
nice --adj 5 {trigdata}
bash -cO extglob {trigdata}
bash -oc errexit {trigdata}
python3 -m timeit {trigdata}
python3 -mtimeit -s {trigdata}
python3 -Im pdb -c {trigdata}
python3.13t {trigdata}
python3.11-intel64 {trigdata}
node -pe {trigdata}
java --source 11 {trigdata}
java --add-opens java.base/java.lang=ALL-UNNAMED {trigdata}
su user -- -c {trigdata}
runuser --user=bob -- sh -c {trigdata}
runuser -ubob -- sh -c {trigdata}
systemd-run --property ExecStartPost={trigdata} true
systemd-run --on-boot 5 {trigdata}
start-stop-daemon --start --exec /bin/sh -- -c {trigdata}
prlimit --nofile=1 {trigdata}
choom -n 1 -- {trigdata}
setarch x86_64 {trigdata}
xvfb-run -a -n 5 {trigdata}
gosu bob {trigdata}
pkexec --user bob {trigdata}
sg group {trigdata}
ip netns exec n {trigdata}
srun -n 1 {trigdata}
/opt/own --wait env {trigdata}
/opt/own -lc {trigdata}
psql -Atc {trigdata}
mysql -Ne {trigdata}
sqlite3 file {trigdata}
ex -sc {trigdata}
rsync -ave {trigdata} a b
scp -oProxyCommand={trigdata} a b
scp -qo ProxyCommand={trigdata} a b
tar -cI {trigdata} -f a
tar --to-comm={trigdata} -xf a
sort --compress-prog={trigdata}
split --filter={trigdata} f
git -ccore.sshCommand={trigdata} fetch
git rebase -x {trigdata}
git bisect run {trigdata}
gdb -batch -ex {trigdata}
emacs --batch -l {trigdata}
man -P {trigdata} a
tcpdump -z {trigdata} -w a
apt-get -o APT::Update::Pre-Invoke::={trigdata} update
ncat --sh-exec {trigdata} h
socat - EXEC:{trigdata}
command exec {trigdata}
npm exec {trigdata}
npm exec -- load {trigdata}
npx {trigdata}
cargo run {trigdata}
cargo --config {trigdata} run
go run {trigdata}
rake {trigdata}
just {trigdata}
mvn {trigdata}
bundle exec {trigdata}
tar cIf {trigdata} a b
tar cfI a {trigdata} b
tar {queue} a
tar -cIf {trigdata} a b
tar -cf a {trigdata}
busybox tar cf a {trigdata}
bsdtar --use-compress-program {trigdata} -cf a b
tar --checkpoint-action {trigdata} -cf a b
git log {trigdata}
git log {userdata}
rsync a {trigdata}
psql {trigdata}
vim {trigdata}
vim +cmd {trigdata}
sort {trigdata}
zip a.zip {trigdata}
curl {trigdata}
curl -sK {trigdata}
curl --config {trigdata}
wget {trigdata}
wget -qe {trigdata} u
sqlite3 -cmd {trigdata}
nice -n 5 git log {trigdata}
sed -e s/a/b/ {trigdata}
sed s/a/b/ {trigdata}
perl -ne print {trigdata}
node -e 1 {trigdata}
ruby -e 1 {trigdata}
php -r 1 {trigdata}
git '' -c {trigdata}
"""
ALLOWED = r"""
pwsh load.ps1 {trigdata}
pwsh -NoProfile -ep Bypass -File load.ps1 {trigdata}
pwsh -Command 'Get-Date'
dotnet load.dll {trigdata}
dotnet run --project load -- {trigdata}
load {trigdata}
load --since={trigdata} -n{trigdata} {queue}
load --queue {queue} --data {trigdata}
load -q {queue} -trace {trigdata}
load script {queue} --env at {trigdata}
sh -c 'load "$1"' sh {trigdata}
sh -c load {queue}
sh job.sh -c {queue}
bash -o errexit /opt/load.sh {queue}
bash -eo pipefail -c 'load "$1"' x {trigdata}
timeout 5 sh -c 'load "$1"' sh {trigdata}
timeout -k 5 9 /opt/load {queue} {trigdata}
nice -n 5 ionice -c 2 timeout -k 5 9 stdbuf -oL env A=b nohup bash -c 'load "$1"' x {trigdata}
env QUEUE={queue} DATA={trigdata} load
env -i -u HOME A=b load {queue}
sudo -u bob -- /opt/load {queue}
sudo --user=bob QUEUE={queue} load
python3 load.py --queue {queue}
python3 -W ignore -m load.job {queue}
python3 -c 'import sys; print(sys.argv[1])' {trigdata}
perl -ne 'print' -- {trigdata}
perl load.pl {queue}
node load.js {queue}
awk -v q={queue} '{print q}' file
awk '{print}' {trigdata}
sed -e s/a/b/ -- {trigdata}
sed s/a/b/ -- {trigdata}
sed s/a/b/ /data/{trigdata}
perl -ne print -- {trigdata}
java -Xmx2g -Dqueue={queue} -cp a.jar Main {trigdata}
java -jar a.jar {trigdata}
find /data -name {trigdata}
find . -exec load {queue} ;
flock -w 5 /tmp/l load {queue}
grep -e {trigdata} file
head -c {userdata} file
su bob -c 'load "$1"' {queue}
git log -- {trigdata}
git log {queue}
git log --author={trigdata}
rsync -a -- a {trigdata}
rsync a /data/{trigdata}
tar -cf {queue} a
tar cf {queue} -- {trigdata}
curl -d{trigdata} https://localhost/
vim -- {trigdata}
load just {trigdata}
busybox load {queue}
deno run load.ts {queue}
spark-submit --conf spark.a=b a.py {trigdata}
echo {trigdata}
xargs load {queue}
python3 -m load.trace {queue}
setpriv --reuid=1 load {queue}
prlimit --nofile=1 load {queue}
srun -n 2 python3 job.py {queue}
runuser --user=bob -- load {queue}
psql -v q={queue} -f load.sql
systemd-run -E QUEUE={queue} load
"""


def lines(text):
    return text.strip().splitlines()


@pytest.mark.parametrize("text", lines(REFUSED))
def test_what_would_be_run_is_refused_at_the_word_that_holds_it(text):
    words = shlex.split(text)
    number = code_from_outside(words)
    assert number
    assert "{" in words[number]


@pytest.mark.parametrize("text", lines(ALLOWED))
def test_data_behind_a_program_or_its_script_is_the_programs_argument(text):
    assert code_from_outside(shlex.split(text)) == 0


SHELLS = ["sh", "bash", "/bin/dash", "busybox sh", "zsh", "/usr/local/bin/ksh93"]
PYTHONS = ["python", "/opt/venv/bin/python3.12", "pypy3"]
FLAGS = ["-c", "-ec", "-e -c", "-o errexit -c", "-lc"]
WRAPPERS = st.sampled_from(
    lines("""
timeout 5
timeout -s KILL 5
nice
nice -n 10
setsid
nohup
env
env -i A=b
sudo -u bob
sudo --user=bob --
doas -u bob
stdbuf -oL -eL
ionice -c 3
chroot /srv
flock -n /tmp/lock
strace -f -o /tmp/out
xargs -n 1
runuser -u bob --
systemd-run --uid bob --pipe
/opt/own --wait
""")
)
CODE = st.sampled_from(
    [
        *(f"{shell} {flag}" for shell in SHELLS for flag in FLAGS),
        *(f"{python} {flag}" for python in PYTHONS for flag in ("-c", "-I -c", "-Bc")),
        *("perl -e", "perl -lne", "perl -MPOSIX -E", "node -e", "node --eval", "ruby -e", "php -r", "lua5.4 -e"),
        *("Rscript -e", "julia -e", "julia --eval", "awk", "gawk -F :", "sed", "sed -n -e", "env -S", "ssh host"),
        *("deno eval", "watch -n 5", "su -c", "script -qc", "find . -exec", "docker exec box"),
    ]
)
SCRIPTS = st.sampled_from(
    [
        *(f"{shell} {flag} script name" for shell in SHELLS for flag in FLAGS),
        *("python3 -c 'pass'", "python3 -I job.py", "perl -ne print --", "node job.js", "ruby job.rb", "awk '{print}'"),
        *("sed -n p --", "/opt/load --queue", "java -jar a.jar"),
    ]
)
FILLED = st.sampled_from(["{trigdata}", "{queue}", "{tmc}", "{userdata}", "{run}", "x {trigdata}", "a{queue}b"])


@settings(max_examples=1000, deadline=None)
@given(st.lists(WRAPPERS, max_size=4), CODE, FILLED, st.lists(st.just("x"), max_size=2))
def test_a_placeholder_in_the_place_of_code_is_refused_behind_whatever_wrappers(wrappers, code, filled, after):
    words = [*shlex.split(" ".join([*wrappers, code])), filled]
    assert code_from_outside([*words, *after]) == len(words) - 1


@settings(max_examples=300, deadline=None)
@given(st.lists(WRAPPERS, min_size=1, max_size=4), FILLED)
def test_a_placeholder_is_no_program_behind_whatever_wrappers(wrappers, filled):
    words = [*shlex.split(" ".join(wrappers)), filled]
    is_own = wrappers[-1].startswith("/opt/own")  # which may take arguments and start nothing
    assert is_own or code_from_outside(words) == len(words) - 1


@settings(max_examples=1000, deadline=None)
@given(st.lists(WRAPPERS, max_size=4), SCRIPTS, FILLED)
def test_a_placeholder_behind_the_script_is_allowed_behind_whatever_wrappers(wrappers, script, filled):
    assert code_from_outside([*shlex.split(" ".join([*wrappers, script])), filled]) == 0


@pytest.mark.parametrize("text", ["timeout 5 sh -c", "xargs python -c", "sudo", "env A=b nice", "ssh host", "awk"])
def test_the_mqtmc2_that_stands_where_no_placeholder_does_is_no_code_either(text):
    with pytest.raises(AttrValueError, match=r"\{tmc\}' behind"):
        InProcess()(Define(object_type="PROCESS", name="P", attributes={"appl_id": text, "appl_type": "unix"}))


def test_it_is_refused_when_it_is_defined_and_of_a_definition_made_before_when_it_is_started():
    text = "timeout 5 sh -c 'echo {trigdata}'"
    wanted = r"'echo \{trigdata\}' behind '-c'"
    with pytest.raises(AttrValueError, match=wanted):
        InProcess()(Define(object_type="PROCESS", name="P", attributes={"appl_id": text, "appl_type": "unix"}))
    process = Process(name="P", appl_id=text)
    trigger = TriggerMessage(q_name="Q", process_name="P", trigger_data="x; id", appl_type=6, appl_id=text)
    with pytest.raises(LaunchError, match=wanted):
        arguments(Order(run_id="r", q_mgr_name="QM1", trigger=trigger, process=process))


@pytest.mark.parametrize(
    "text", ["sh -c 'printf %s \"$1\"' sh", "timeout 5 env A=b sh -c 'printf %s \"$1\"' sh", "printf %s"]
)
def test_what_is_allowed_is_one_argument_of_the_real_program_and_runs_nothing(tmp_path, text):
    value = f"x; touch {tmp_path}/pwned; $(touch {tmp_path}/pwned) `touch {tmp_path}/pwned`"
    trigger = TriggerMessage(q_name="Q", process_name="P", trigger_data=value, appl_type=6, appl_id=f"{text} {X}")
    argv = arguments(Order(run_id="r", q_mgr_name="QM1", trigger=trigger, process=Process(name="P")))
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, list(tmp_path.iterdir())) == (value, [])
