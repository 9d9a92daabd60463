"""What a process definition may say to start: refused when it is defined or altered, and not when it runs."""

import pytest

from tests.in_process import InProcess
from trigmon.mq.attributes import Process
from trigmon.mq.calls import Alter, Define
from trigmon.mq.enums import YesNo
from trigmon.mq.errors import AttrValueError
from trigmon.rules.runs.check_program import NOT_FROM_OUTSIDE, faults, secret_names, template
from trigmon.rules.runs.python_words import program_at

OPEN_QUOTE = "words as a shell splits them (no closing quotation)"
PROGRAM = "words of which the first is the program itself, no placeholder"
SCRIPT = "words of which the first is the PySpark file itself, no option and no placeholder"
OPTION = "words in which a placeholder is an option's value, --name={trigdata}, not "
USER = "the name of a user, no number, and never root"
BAD_USERS = ["root", "ROOT", "0", "1000", "+0", "-u", "a b", "a/b", "a:b", "é"]
SECRETS = "names of secrets divided by commas: letters, digits, . _ -, no leading dot"
BAD_SECRETS = [("../db", "../db"), ("db,,key", ""), ("db, /etc/shadow", "/etc/shadow"), (".db", ".db"), ("a b", "a b")]
WRONG = [
    ("unix", "appl_id", "APPLICID", "a 'b", OPEN_QUOTE),
    ("unix", "appl_id", "APPLICID", "a b\\", "words as a shell splits them (no escaped character)"),
    ("unix", "appl_id", "APPLICID", "{trigdata} x", PROGRAM),
    ("unix", "appl_id", "APPLICID", "/opt/{queue}.sh", PROGRAM),
    ("unix", "appl_id", "APPLICID", "'' x", PROGRAM),
    ("unix", "env_data", "ENVRDATA", "it's", OPEN_QUOTE),
    ("unix", "working_directory", "WORKDIR", ".", "an absolute path, or blank for the monitor's own directory"),
    ("spark", "appl_id", "APPLICID", '"load.py', OPEN_QUOTE),
    ("spark", "appl_id", "APPLICID", "{userdata}", SCRIPT),
    ("spark", "appl_id", "APPLICID", "--version", SCRIPT),
    ("spark", "spark_conf", "SPKCONF", "a=1 b", "words of the form key=value, not 'b'"),
    ("spark", "spark_arguments", "SPKARGS", "--day 'one", OPEN_QUOTE),
    ("unix", "appl_id", "APPLICID", "load -{trigdata}", f"{OPTION}'-{{trigdata}}'"),
    ("unix", "appl_id", "APPLICID", "load --{trigdata}=x", f"{OPTION}'--{{trigdata}}=x'"),
    ("unix", "env_data", "ENVRDATA", "--with{queue} &", f"{OPTION}'--with{{queue}}'"),
    ("spark", "spark_arguments", "SPKARGS", "--{userdata}", f"{OPTION}'--{{userdata}}'"),
    (
        "unix",
        "appl_id",
        "APPLICID",
        "/bin/sh -c 'load {trigdata}'",
        f"{NOT_FROM_OUTSIDE}, not 'load {{trigdata}}' behind '-c'",
    ),
    (
        "unix",
        "appl_id",
        "APPLICID",
        "bash -o pipefail -ec 'load {queue}' x",
        f"{NOT_FROM_OUTSIDE}, not 'load {{queue}}' behind '-ec'",
    ),
    ("unix", "appl_id", "APPLICID", "sh {trigdata}", f"{NOT_FROM_OUTSIDE}, not '{{trigdata}}' behind 'sh'"),
    ("unix", "appl_id", "APPLICID", "/bin/sh -c", f"{NOT_FROM_OUTSIDE}, not '{{tmc}}' behind '-c'"),
    ("unknown", "spark_conf", "SPKCONF", "it's", OPEN_QUOTE),
    ("unknown", "spark_arguments", "SPKARGS", "--{userdata}", f"{OPTION}'--{{userdata}}'"),
    *((kind, "run_as", "RUNAS", user, USER) for kind in ("unix", "spark", "unknown") for user in BAD_USERS),
    *(
        (kind, "secrets", "SECRETS", text, f"{SECRETS} ({bad!r} is no name of a secret)")
        for kind in ("unix", "spark", "unknown")
        for text, bad in BAD_SECRETS
    ),
]


def process(qm, name):
    (row,) = [row for row in qm.rows("PROCESS") if row["name"] == name]
    return row


@pytest.mark.parametrize(("kind", "name", "mqsc", "value", "wanted"), WRONG)
def test_what_could_not_be_started_is_refused_when_it_is_defined_or_altered(kind, name, mqsc, value, wanted):
    qm = InProcess()
    said = f"PROCESS(P) {mqsc}({value}): {name} must be {wanted}"
    with pytest.raises(AttrValueError) as refused:
        qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": kind, name: value}))
    assert refused.value.about == said
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": kind, "appl_id": "load"}))
    before = process(qm, "P")
    with pytest.raises(AttrValueError) as refused:
        qm(Alter(object_type="PROCESS", name="P", attributes={name: value}))
    assert refused.value.about == said
    assert process(qm, "P") == before


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("unix", {"appl_id": ""}),
        ("unix", {"appl_id": "load.sh 'two words' {trigdata}", "env_data": "tail &"}),
        ("unix", {"appl_id": "awk '{print}'", "spark_conf": "a='it is no matter'"}),
        ("spark", {"appl_id": "load.py --queue {queue}", "spark_conf": "a=1 b='2 3'"}),
        ("WINDOWSNT", {"appl_id": "C:\\it's mine.exe", "env_data": "'"}),
        (70000, {"appl_id": "{queue}", "run_as": "load", "secrets": "a"}),
        (
            "unix",
            {
                "appl_id": "load --since={trigdata} -n{trigdata} {queue}",
                "run_as": "svc-load_1.x$",
                "secrets": "a, b.c-d_e",
            },
        ),
        ("unix", {"appl_id": "/bin/sh -c 'load \"$1\"' sh {trigdata}"}),
        ("unix", {"appl_id": "bash -o errexit /opt/load.sh", "env_data": "{queue}"}),
        ("spark", {"appl_id": "load.py", "run_as": "domain.user@realm"}),
    ],
)
def test_a_blank_program_and_what_other_monitors_start_may_be_defined(kind, attributes):
    qm = InProcess()
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": kind, **attributes}))
    assert {name: process(qm, "P")[name] for name in attributes} == attributes


PYTHON = "no, or APPLICID python FILE or python -m MODULE"
NEVER_WARM = [
    ({"appl_id": "load x.py"}, PYTHON),
    ({"appl_id": "python"}, PYTHON),
    ({"appl_id": "python -c pass"}, PYTHON),
    ({"appl_id": "python -i x.py"}, PYTHON),
    ({"appl_id": "timeout 9 python x.py"}, PYTHON),
    ({"appl_id": "python x.py", "shell": "yes"}, "no with SHELL(YES)"),
    ({"appl_id": "x.py", "appl_type": "spark"}, "no with APPLTYPE(SPARK)"),
]


@pytest.mark.parametrize(("attributes", "wanted"), NEVER_WARM, ids=str)
def test_only_a_python_program_has_a_warm_interpreter(attributes, wanted):
    qm = InProcess()
    with pytest.raises(AttrValueError) as refused:
        qm(
            Define(
                object_type="PROCESS",
                name="P",
                attributes=attributes | {"warm_interpreter": "yes", "tmc_argument": "no"},
            )
        )
    assert f"WARM(YES): warm_interpreter must be {wanted}" in str(refused.value)
    # Nor does a warm one become another program.
    python = {"appl_id": "python x.py", "warm_interpreter": "yes", "tmc_argument": "no"}
    qm(Define(object_type="PROCESS", name="P", attributes=python))
    with pytest.raises(AttrValueError, match=r"WARM\(YES\)"):
        qm(Alter(object_type="PROCESS", name="P", attributes=attributes))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("python x.py a", 1),
        ("/srv/venv/bin/python3.12 -u -W error -Xdev -B x.py", 6),
        ("python3 -m package a", 1),
        ("python -Im package", 0),
        ("python -X", 0),
        ("python -m", 0),
        ("python -", 0),
        ("python2 x.py", 0),
        ("", 0),
    ],
)
def test_a_python_program_stands_behind_pythons_options(text, at):
    assert program_at(text.split()) == at


def test_modules_are_names_divided_by_blanks():
    for text, fits in [("json  a.b_c", True), ("a,b", False), ("-c", False), ("a.", False), ("../x", False)]:
        found = [name for name, _ in faults(Process(name="P", warm_modules=text))]
        assert found == ([] if fits else ["warm_modules"])


def test_a_new_type_looks_at_everything_anew():
    qm = InProcess()
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": 70000, "appl_id": "it's"}))
    qm(Alter(object_type="PROCESS", name="P", attributes={"user_data": "u"}))
    with pytest.raises(AttrValueError, match="APPLICID"):
        qm(Alter(object_type="PROCESS", name="P", attributes={"appl_type": "unix"}))


def test_a_default_process_spoils_no_script_that_says_nothing_of_what_is_ours():
    """A script leaves out attributes of ours, so that MQ can read it: what fills them there must fit every type."""
    qm = InProcess()
    with pytest.raises(AttrValueError, match="SECRETS"):
        default = {"appl_type": "unknown", "secrets": "it's"}
        qm(Alter(object_type="PROCESS", name="SYSTEM.DEFAULT.PROCESS", attributes=default))


def test_what_is_taken_from_another_process_is_looked_at_too():
    qm = InProcess()
    qm(Define(object_type="PROCESS", name="P", attributes={"appl_type": 70000, "appl_id": "it's"}))
    with pytest.raises(AttrValueError, match="APPLICID"):
        qm(Define(object_type="PROCESS", name="Q", like="P", attributes={"appl_type": "unix"}))


def test_every_fault_is_reported():
    told = dict(faults(Process(name="P", appl_id="'", env_data="'")))
    assert told == {"appl_id": OPEN_QUOTE, "env_data": OPEN_QUOTE}


def test_a_shells_script_is_the_definitions_wherever_it_stands():
    """What would be the script's is told at the attribute that holds it."""
    spoils = Process(name="P", appl_id="sh -c", env_data="'load {trigdata}'")
    assert [name for name, _ in faults(spoils)] == ["env_data"]
    fits = Process(name="P", appl_id="sh -c", env_data="'load \"$1\"' sh {trigdata}")
    assert not list(faults(fits))


def test_a_program_with_no_placeholder_gets_the_mqtmc2_as_one_word():
    as_in_mq, without = Process(name="P"), Process(name="P", tmc_argument=YesNo.NO)
    assert template(as_in_mq, ["load"], ["x"]) == ["load", "{tmc}", "x"]
    assert template(as_in_mq, ["load", "{queue}"], ["x"]) == ["load", "{queue}", "x"]
    assert template(without, ["load"], ["x"]) == ["load", "x"]
    assert template(without, ["load", "{tmc}"], ["x"]) == ["load", "{tmc}", "x"]


def test_secrets_are_names_divided_by_commas():
    assert secret_names(" a , b.c ") == ["a", "b.c"]
    assert secret_names("") == []
