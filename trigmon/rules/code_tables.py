"""Programs that run other programs, or texts, and their options: what :mod:`trigmon.rules.code_words` decides by.

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
    Those of ``values`` and ``longs`` take a value, and what is assigned by an option of ``data`` is no code.
    """

    code: str = ""
    values: str = ""
    longs: str = ""
    ends: bool = False
    skip: int = 0
    data: str = ""


_SHELL = Interpreter(code="c", values="oO", longs="--rcfile --init-file")
SHELLS = _words("sh ash bash dash ksh mksh pdksh rbash rksh zsh csh tcsh fish")
_PERL = Interpreter(code="e E", values="IMmFx")
_NODE = Interpreter(code="e p --eval --print", values="rC", longs="--require --import --loader -r")
_LUA = Interpreter(code="e", values="l")
_AWK = Interpreter(code="e f --source --file", values="Fvil", longs="--assign --field-separator", data="v")
_SED = Interpreter(code="e f --expression --file", values="l", longs="--line-length")
_SCHEME = Interpreter(code="c e --eval", values="lL")
INTERPRETERS: dict[str, Interpreter] = {
    **dict.fromkeys(SHELLS, _SHELL),
    **dict.fromkeys(("python", "pypy", "pythonw"), Interpreter("c m", "WX", "--check-hash-based-pycs", ends=True)),
    **dict.fromkeys(("perl", "raku"), _PERL),
    **dict.fromkeys(("node", "nodejs"), _NODE),
    **dict.fromkeys(("ruby", "jruby"), Interpreter("e", "rICEFxK")),
    **dict.fromkeys(("lua", "luajit"), _LUA),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK),
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
    "pwsh": Interpreter("-c -Command -File -EncodedCommand", ends=True),
    "erl": Interpreter("-eval -s -run"),
    "java": Interpreter("-jar -m --module", "", "-cp -classpath --class-path -p --module-path --add-modules", data="D"),
    "su": Interpreter("c --command --session-command", "gGsw", "--group --shell --whitelist-environment", skip=1),
    "script": Interpreter("c --command", "EmoIOBTt", "--log-out --log-in --log-io --log-timing --echo"),
}
RUNNERS: dict[str, Runner] = {
    "env": Runner("uC", "--unset --chdir", code="S --split-string"),
    "nice": Runner("n", "--adjustment"),
    "ionice": Runner("cnpPu", "--class --classdata"),
    "chrt": Runner("TPD", operands=1),
    "taskset": Runner(operands=1),
    "timeout": Runner("ks", "--kill-after --signal", operands=1),
    "stdbuf": Runner("ioe", "--input --output --error"),
    "chroot": Runner(longs="--userspec --groups", operands=1),
    "unshare": Runner("SGRw", "--setuid --setgid --root --wd"),
    "nsenter": Runner("tSGrw", "--target --setuid --setgid"),
    "setpriv": Runner(
        longs="--reuid --ruid --euid --regid --rgid --egid --groups --inh-caps --ambient-caps --bounding-set "
        "--securebits --pdeathsig --selinux-label --apparmor-profile"
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
        "--on-active --machine --host --service-type --timer-property",
    ),
    "systemd-inhibit": Runner(longs="--what --who --why --mode"),
    "dbus-run-session": Runner(longs="--config-file --dbus-daemon"),
    "cgexec": Runner("g"),
    "numactl": Runner("iNCmpl", "--interleave --cpunodebind --physcpubind --membind"),
    "firejail": Runner(),
    "sshpass": Runner("pfde"),
    "start-stop-daemon": Runner("pxnugcdrkNPI", "--pidfile --name --user --group --chuid --chdir"),
    "npx": Runner("pc", "--package", code="c --call"),
    **dict.fromkeys(("uv", "poetry", "pipenv", "pixi", "conda"), Runner("pn", "--name --prefix --with", operands=1)),
    **dict.fromkeys(
        _words(
            "nohup setsid busybox toybox command exec builtin nocache fakeroot catchsegv proxychains tsocks torsocks "
            "setarch linux32 linux64 eatmydata chpst dumb-init tini unbuffer xvfb-run caffeinate"
        ),
        Runner(),
    ),
}
JOINS = _words(
    "ssh rsh slogin autossh mosh watch parallel sem make gmake ninja eval at batch pdsh dsh clush ansible "
    "docker podman nerdctl kubectl oc lxc machinectl vagrant tmux screen entr incrond crontab"
)
"""What makes its words the line of a shell, or its options too many: no placeholder at all behind it."""

COMMON = _words("env time watch script make find parallel at batch command exec java R sem eval")
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
CODE_OF = {"tar": "IF", "scp": "SoF", "sftp": "SoF", "rsync": "e", "git": "c", "zip": "T"}
EXECUTES = _words("-exec -execdir -ok -okdir")
LOADER = re.compile(r"LD_.*|PATH|.*PATH|.*_?OPTIONS|.*OPTS?|BASH_ENV|ENV|IFS|SHELL|EDITOR|PAGER|PYTHON.*|PERL.*|GIT_.*")
"""Variables that say what is executed, or loaded."""
