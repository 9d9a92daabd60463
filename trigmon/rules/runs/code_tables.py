"""Programs that run other programs, or texts, and their options: what :mod:`trigmon.rules.runs.code_words` decides by.

Sources: the manual pages of the programs named here.
"""

from __future__ import annotations

import re
from typing import NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Runner(NamedTuple):
    """A program that starts the one named behind its options and so many operands.

    ``values`` are the letters of options that take a value, ``longs`` the long ones that take one as the next word,
    ``code`` the letters and long options whose value a shell runs, or that is cut into words.
    """

    values: str = ""
    longs: str = ""
    operands: int = 0
    code: str = ""


class Interpreter(NamedTuple):
    """A program that runs a text, or the file that is its first operand behind ``skip`` others.

    ``code`` are the options, letters and whole words, that bring the text; with ``ends`` all behind it is arguments.
    Those of ``values`` and ``longs`` take a value, and what is assigned by an option of ``data`` is no code. With
    ``permutes`` options may stand behind operands.
    """

    code: str = ""
    values: str = ""
    longs: str = ""
    ends: bool = False
    skip: int = 0
    data: str = ""
    permutes: bool = False


_SHELL = Interpreter(code="c", values="oO", longs="--rcfile --init-file")
SHELLS = _words("sh ash bash dash ksh mksh pdksh rbash rksh zsh csh tcsh fish")
_PERL = Interpreter(code="e E", values="IMmFx")
_NODE = Interpreter(code="e p -pe --eval --print", values="rC", longs="--require --import --loader -r")
_LUA = Interpreter(code="e", values="l")
_AWK = Interpreter(code="e f --source --file", values="Fvil", longs="--assign --field-separator", data="v")
_SED = Interpreter(code="e f --expression --file", values="l", longs="--line-length", permutes=True)
_SCHEME = Interpreter(code="c e --eval", values="lL")
INTERPRETERS: dict[str, Interpreter] = {
    **dict.fromkeys(SHELLS, _SHELL),
    **dict.fromkeys(("python", "pypy", "pythonw"), Interpreter("c m", "WX", "--check-hash-based-pycs", ends=True)),
    **dict.fromkeys(("perl", "raku"), _PERL),
    **dict.fromkeys(("node", "nodejs"), _NODE),
    **dict.fromkeys(("ruby", "jruby"), Interpreter("e", "rICEFxK")),
    **dict.fromkeys(("lua", "luajit"), _LUA),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), _AWK),
    **dict.fromkeys(("sed", "gsed"), _SED),
    **dict.fromkeys(("guile", "racket", "scala", "groovy", "clojure", "elixir", "osascript"), _SCHEME),
    **dict.fromkeys(("deno", "bun"), Interpreter("e p --eval --print", "r", skip=1)),
    "php": Interpreter("r B R E f --run", "dcz", "--define"),
    "Rscript": Interpreter("e"),
    "R": Interpreter("e f --file"),
    "julia": Interpreter("e E --eval --print", "LpCHJt", "--load --project --threads"),
    "octave": Interpreter("--eval"),
    "tclsh": Interpreter(),
    "expect": Interpreter("c"),
    "wish": Interpreter(),
    "erl": Interpreter("-eval -s -run"),
    "java": Interpreter(
        "-jar -m --module",
        "",
        "-cp -classpath --class-path -p --module-path --add-modules --source --add-opens --add-exports --add-reads "
        "--limit-modules --upgrade-module-path --enable-native-access",
        ends=True,
        data="D",
    ),
    "su": Interpreter("c --command --session-command", "gGsw", "--group --shell --whitelist-environment", skip=1),
    "script": Interpreter("c --command", "EmoIOBTt", "--log-out --log-in --log-io --log-timing --echo"),
}
MODULES = _words(
    "timeit pdb profile cProfile trace runpy doctest unittest pytest coverage pip IPython debugpy mpi4py "
    "torch.distributed.run torch.distributed.launch"
)
"""Modules of Python that run the text, the file or the module that their arguments name."""
RUNNERS: dict[str, Runner] = {
    "env": Runner("uC", "--unset --chdir", code="S --split-string"),
    "nice": Runner("n", "--adjustment"),
    "ionice": Runner("cnpPu", "--class --classdata"),
    "chrt": Runner("TPD", "--sched-runtime --sched-period --sched-deadline", operands=1),
    "taskset": Runner(operands=1),
    "timeout": Runner("ks", "--kill-after --signal", operands=1),
    "stdbuf": Runner("ioe", "--input --output --error"),
    "chroot": Runner(longs="--userspec --groups", operands=1),
    "unshare": Runner(
        "SGRwl",
        "--setuid --setgid --root --wd --load-interp --map-user --map-group --map-users --map-groups --propagation "
        "--setgroups --monotonic --boottime",
    ),
    "nsenter": Runner("tSGrw", "--target --setuid --setgid"),
    "setpriv": Runner(
        longs="--reuid --ruid --euid --regid --rgid --egid --groups --inh-caps --ambient-caps --bounding-set "
        "--securebits --pdeathsig --selinux-label --apparmor-profile --ptracer "
        "--landlock-access --landlock-rule --seccomp-filter"
    ),
    "sudo": Runner(
        "ugChpRrtTUD", "--user --group --host --prompt --chdir --chroot --role --type --close-from --command-timeout"
    ),
    "doas": Runner("uC"),
    "runuser": Runner("ugGsw", "--user --group --shell", code="c --command"),
    "flock": Runner("wE", "--wait --timeout --conflict-exit-code", operands=1, code="c --command"),
    "xargs": Runner("aEIdLnPs", "--arg-file --delimiter --max-args --max-procs --max-lines --replace --max-chars"),
    "strace": Runner("abeEIoOpPsSuUX"),
    "ltrace": Runner("aAeFlnopsuwxDX"),
    "time": Runner("fo", "--format --output"),
    "systemd-run": Runner(
        "pEuMHC",
        "--unit --property --description --slice --uid --gid --nice --setenv --working-directory --on-calendar "
        "--on-active --on-boot --on-startup --on-unit-active --on-unit-inactive --path-property --socket-property "
        "--background --machine --host --service-type --timer-property",
    ),
    "systemd-inhibit": Runner(longs="--what --who --why --mode"),
    "dbus-run-session": Runner(longs="--config-file --dbus-daemon"),
    "cgexec": Runner("g"),
    "numactl": Runner("iNCmpl", "--interleave --cpunodebind --physcpubind --membind"),
    "firejail": Runner(),
    "sshpass": Runner("pfde"),
    "npx": Runner("pc", "--package", code="c --call"),
    **dict.fromkeys(
        _words("uv poetry pipenv pixi conda bundle hatch pdm rye"),
        Runner("pn", "--name --prefix --with", operands=1),
    ),
    "prlimit": Runner("p", "--pid"),
    "choom": Runner("np", "--adjust --pid"),
    "setarch": Runner(operands=1),
    "chpst": Runner("uUbe/nmdofpclrt"),
    "proxychains": Runner("f"),
    "fakeroot": Runner("lsib", "--lib --faked"),
    "xvfb-run": Runner("enfspw", "--error-file --server-num --auth-file --server-args --xauth-protocol --wait"),
    "tini": Runner("pe"),
    "dumb-init": Runner("r", "--rewrite"),
    **dict.fromkeys(("gosu", "su-exec", "setuidgid", "s6-setuidgid", "envuidgid", "envdir"), Runner(operands=1)),
    **dict.fromkeys(("setlock", "lckdo", "faketime"), Runner(operands=1)),
    "pkexec": Runner("u", "--user"),
    "runcon": Runner("turl", "--type --user --role --range"),
    "aa-exec": Runner("pn", "--profile --namespace"),
    "cpulimit": Runner("l", "--limit"),
    "softlimit": Runner("madfolpqrstc"),
    "srun": Runner("nNcptJoeiAwxDCL", "--ntasks --nodes --partition --time --job-name --account --output --error"),
    **dict.fromkeys(
        ("mpirun", "mpiexec", "orterun"), Runner("nHxc", "-np --np -host --host --hostfile -machinefile -wdir -x")
    ),
    **dict.fromkeys(("micromamba", "mamba"), Runner("pn", "--name --prefix", operands=1)),
    **dict.fromkeys(
        _words(
            "chronic ifne rlwrap valgrind hyperfine pipx uvx daemonize perf apptainer singularity bwrap proot "
            "nohup setsid busybox toybox command exec builtin nocache catchsegv tsocks torsocks linux32 linux64 "
            "eatmydata unbuffer caffeinate"
        ),
        Runner(),
    ),
}
POWERSHELL = _words("pwsh pwsh-preview pwsh-lts powershell")
POWERSHELL_FLAGS = _words("-noprofile -nop -noninteractive -noni -nologo -nol -login -l -mta -sta")
POWERSHELL_VALUES = _words("-executionpolicy -ex -ep -workingdirectory -wd -settingsfile -settings -configurationname")
"""PowerShell's options that may stand before ``-File``, in small letters: those alone, and those with a value."""
JOINS = _words(
    "ssh rsh slogin autossh mosh watch parallel sem make gmake ninja eval at batch pdsh dsh clush ansible "
    "start-stop-daemon docker-compose buildah ctr crictl ip sg capsh sqlite3 socat gdb bc dc ed "
    "npm pnpm yarn bunx cargo go rake just mvn mvnw gradle gradlew ant bazel task tox nox sbt meson cmake ctest "
    "invoke lldb "
    "docker podman nerdctl kubectl oc lxc machinectl vagrant tmux screen entr incrond crontab"
)
"""What makes its words the line of a shell, or its options too many: no placeholder at all behind it."""

COMMON = _words(
    "time watch script make find parallel at batch command exec java R sem eval ip ed bc dc perf just ant go task "
    "invoke nox"
)
"""Those of the names above that are also words: behind a program in no table they are taken as that, unless options
follow."""

TEXT_OF = _words("grep egrep fgrep rg head tail cut wc ping sort uniq echo printf test expr")
"""Programs in which -c and -e mean no code."""

CODE = _words(
    "-c -e -E -S -eval -Command -command --command --cmd --eval --exec --execute --call --code --script --source "
    "--expression --split-string --rsh --rsync-path --to-command --checkpoint-action --use-compress-program "
    "--compress-program --info-script --new-volume-script --rmt-command --rsh-command --upload-pack --receive-pack "
    "--exec-path --preload --require --import --init-command --conf --driver-java-options --properties-file"
)
CODE_OF = {
    **dict.fromkeys(("tar", "gtar", "bsdtar"), "I F"),
    "curl": "K --config",
    "wget": "e --use-askpass",
    "less": "k --lesskey-file --lesskey-src --lesskey-content",
    "scp": "S o F",
    "sftp": "S o F b D",
    "rsync": "e M",
    "git": "c x O --extcmd --exec --open-files-in-pager --config-env --tree-filter foreach run",
    "zip": "T -TT --unzip-command",
    "sort": "",
    "split": "--filter",
    "psql": "c f",
    "lftp": "c e f",
    "emacs": "l f x --load --funcall",
    "tcpdump": "z",
    "man": "P H --pager",
    "rpm": "E D --pipe --define",
    "swipl": "g t f l",
    "ncat": "c e --sh-exec --lua-exec",
    **dict.fromkeys(("mysql", "mariadb"), "e"),
    **dict.fromkeys(("vi", "vim", "nvim", "ex", "view"), "c S s u"),
    **dict.fromkeys(("apt", "apt-get"), "c o"),
}
"""Of some programs: the letters, also behind others as in ``psql -Atc``, and the words before or in which code stands.
Their long options may be shortened. A word that begins with what came from outside could be an option: it
stands behind ``--``."""
BUNDLES = _words("tar gtar bsdtar")
"""Programs whose first word is letters of options also without a dash; the values follow in their order."""
EXECUTES = _words("-exec -execdir -ok -okdir")
LOADER = re.compile(r"LD_.*|PATH|.*PATH|.*_?OPTIONS|.*OPTS?|BASH_ENV|ENV|IFS|SHELL|EDITOR|PAGER|PYTHON.*|PERL.*|GIT_.*")
"""Variables that say what is executed, or loaded."""
