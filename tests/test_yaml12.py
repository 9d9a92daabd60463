"""YAML 1.2, as a person reads it."""

import math
import random

import pytest
import yaml

from trigmon import yaml12


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("no", "no"),
        ("y", "y"),
        ("2026-11-20", "2026-11-20"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("012", 12),
        ("-7", -7),
        ("+7", 7),
        ("0o12", 10),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("'012'", "012"),
        ('"true"', "true"),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("!!float 12", 12.0),
        ("[on, 1]", ["on", 1]),
        ("{on: off}", {"on": "off"}),
        ("|\n  on\n  off\n", "on\noff\n"),
    ],
)
def test_a_value_is_what_a_person_reads(text, value):
    read = yaml12.load(f"key: {text}").value["key"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("text", ["on", "012", "1.5", "true", "~", "12:30"])
def test_a_bare_word_means_the_same_outside_a_file(text):
    assert yaml12.scalar(text) == yaml12.load(f"key: {text}").value["key"]


def test_keys_are_words_too():
    assert yaml12.load("on: 1\nno: 2\n2026-01-01: 3\n").value == {"on": 1, "no": 2, "2026-01-01": 3}


def test_the_line_of_every_key_and_item_is_known():
    text = "# a comment\na: 1\nb:\n  - x\n  - c: 2\n    d: [1,\n      2]\n"
    document = yaml12.load(text, "file.yaml")
    assert [document.line(*path) for path in [(), ("a",), ("b",), ("b", 0), ("b", 1, "d"), ("b", 1, "d", 1)]] == [
        2,
        2,
        3,
        4,
        6,
        7,
    ]
    assert document.where("b", 1, "missing") == "file.yaml:5"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, "already given in line 1"),
        ("a:\n  b: [1\n", 3, "expected"),
        ("a: 1\n b: 2\n", 2, "mapping values"),
        ("- a: 1\n b: 2\n", 2, "look at its indentation"),
        ("a:\n\tb: 1\n", 2, "not with a tab"),
        ("- a: 'x\n- b: 1\n", 3, "the quote of line 1 is not closed"),
        ("a: 1\nb: [1,\n  2\nc: 3\n", 4, "the bracket of line 2 is not closed"),
        ("a: @x\n", 1, "wants quotes around it"),
        ("- a: 1\n  b\n  c: 2\n", 3, "a ':' is missing here, or in the line before"),
        ("x: 1\na: !!python/object:os.system x\n", 2, "tag"),
        ("a: !!binary AAAA\n", 1, "tag"),
        ("? [1]\n: 2\n", 1, "a key is"),
        ("a: !!int x\n", 1, "no int"),
        ("a: *nowhere\n", 1, "alias"),
        ("a: &x [*x]\n", 1, "recursive"),
        ("a: 1\n---\nb: 2\n", 3, "second document"),
        ("[" * 5000, 1, "too deeply"),
        (b"a: \xff\n", 1, "UTF-8"),
        ("a: \x00\n", 1, "UTF-8"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(text, line, words):
    with pytest.raises(yaml12.YamlError) as raised:
        yaml12.load(text, "file.yaml")
    assert str(raised.value).startswith(f"file.yaml:{line}: ")
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_several_documents_are_read_and_empty_ones_left_out():
    documents = yaml12.load_all("a: 1\n---\n---\n# nothing\n---\nb: 2\n")
    assert [(document.value, document.line()) for document in documents] == [({"a": 1}, 1), ({"b": 2}, 6)]
    assert yaml12.load("# nothing\n").value is None


def test_an_unknown_key_is_refused_with_the_nearest_known_one():
    document = yaml12.load("a:\n  Colour: red\n", "f")
    assert str(document.unknown_key(["color", "size"], "a", "Colour")) == (
        "f:2: unknown key 'Colour'; the nearest known one is 'color'"
    )
    assert str(document.unknown_key(["x", "y"], "a", "Colour")) == "f:2: unknown key 'Colour'; known are x, y"


def test_an_alias_gives_what_it_names():
    assert yaml12.load("a: &x {k: 1}\nb: *x\n").value == {"a": {"k": 1}, "b": {"k": 1}}


def test_what_a_number_was_written_as_is_known_to_who_wants_text():
    document = yaml12.load("a: 012\nb: [1.10, 0x1F, {c: 1e3}]\nd: True\ne: ~\nf: '7'\ng: !!int 007\nh: &x 1.0\ni: *x\n")
    assert document.as_written() == {
        "a": "012",
        "b": ["1.10", "0x1F", {"c": "1e3"}],
        "d": "True",
        "e": None,
        "f": "7",
        "g": "007",
        "h": "1.0",
        "i": "1.0",
    }
    assert document.as_written("b", 2, "c") == "1e3"
    assert document.value["b"][0] == 1.1


@pytest.mark.parametrize("text", ["!!int [1]", "!!str {a: b}", "!!map x", "!!seq {a: b}", "!!map [a]", "!!null []"])
def test_a_tag_before_another_kind_of_value_is_refused(text):
    with pytest.raises(yaml12.YamlError, match=r"^f\.yaml:2: what stands behind !!"):
        yaml12.load(f"a: 1\nb: {text}\n", "f.yaml")


TEXTS = (
    "- put: {queue: Q, size: 32769, flags: [a, b]}\n  reason: X\n- open: {queue: Q, for: [input_shared]}\n",
    "# a\nkey: 'it''s'\nother:   # behind\n- |\n  x\n  y\n- >-\n  z\nlast: &x [1, 2]\nagain: *x\n",
    '--- \na: "\\x41\\u263a"\n---\n- !!str 1\n- ? b\n  : c\n...\n',
)
BITS = [
    *"\n :-#[]{},&*!|>'\"%?ab10.~\\\tü",
    "  ",
    "- ",
    ": ",
    "\n  ",
    "---\n",
    "...\n",
    "<<: ",
    "!!int ",
    "&a ",
    "*a",
    "a" * 1030,
]


def _taken(text, read):
    try:
        documents = read(text)
    except (yaml.YAMLError, yaml12.YamlError, RecursionError, ValueError):
        return "refused"
    return repr([(it.value, it.first_line, [*it._lines.values()], [*it._written.values()]) for it in documents])


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml here")
@pytest.mark.parametrize("seed", range(4))
def test_what_the_fast_parser_takes_the_other_reads_the_same(seed):
    chance, taken = random.Random(seed), 0
    for _ in range(1500):
        text = chance.choice(TEXTS)
        for _ in range(chance.randint(1, 4)):
            at = chance.randint(0, len(text))
            text = text[:at] + chance.choice(BITS) + text[at + chance.choice((0, 0, 1, 3)) :]
        if yaml12._SCHEMAS_DIFFER(text):
            continue
        fast = _taken(text, lambda it: yaml12._documents(yaml12._FastLoader(it), "f.yaml"))
        if fast != "refused":
            taken += 1
            assert fast == _taken(text, lambda it: yaml12._exactly(it, "f.yaml")), text
    assert taken > 20


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml here")
def test_a_file_without_a_mistake_is_read_by_the_fast_parser(monkeypatch):
    monkeypatch.setattr(yaml12, "_Loader", None)
    assert yaml12.load("- qlocal: A\n  description: a word, 'two' (größer)\n  get: on\n").line(0, "get") == 3


def test_a_text_nested_without_end_is_refused():
    with pytest.raises(yaml12.YamlError, match="nested too deeply"):
        yaml12.load("[" * 100_000)
