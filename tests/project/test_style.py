"""The style page's rules for words, names and sizes hold for the product's source (docs/contributing/style.md)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import trigmon

PACKAGE = Path(trigmon.__file__).parent
TESTS = Path(__file__).parents[1]
FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = [str(path.relative_to(PACKAGE)) for path in FILES]

LONGEST_FILE, MOST_METHODS, MOST_FIELDS, LONGEST_FUNCTION = 400, 30, 20, 45
# What is above a limit, and why it stays so.
EXCEPTIONS = {
    "mq/errors.py": "one class for each reason, four lines each",
    "mq/attributes.py": "the one table of attributes",
    "mq/attributes.py:MessageQueue": "the attributes of MQ's queues, one field each",
    "mq/attributes.py:Process": "the attributes of a process, Spark's among them, one field each",
    "mq/calls.py": "one struct for each call of the wire",
    "mq/descriptors.py:MessageDescriptor": "the MQMD, one field each",
    "mq/run.py:RunFields": "the fields of a run record, as stored",
    "client/option_names.py:PutWords": "the words of a put, for type checkers",
    "client/address.py:connect": "half of it is the docstring of the public entry",
    "client/connection.py:Connection": "one method for each call of the public client",
    "spark/drain_queue.py:drain": "half of it is the signature of the public entry",
    "definitions/object_models.py:SparkGroup": "the keys of spark-submit, one field each",
    "rules/lint.py": "the table of lint rules, one small function each",
}
SHARED_FILE_NAMES = {
    "connection.py": "one for each thing that is connected to: the client's, the server's, a database's",
    "store.py": "one for each store behind the port",
    "group.py": "one for each store that can hold a queue-sharing group",
    "structures.py": "those of PCF, and those of the MQI",
    "__main__.py": "what python -m runs: the command line, and programs written for MQ",
    "reservation.py": "the value in the rules, and the client's object",
}
METAPHORS = (
    r"heed\w*|guests?|clerks?|cellars?|bells?|strays?|houses?|housekeepers?"
    r"|errands?|doors?|roofs?|storeys?|rungs?|puts? up with|let go of|str(?:ikes?|uck) off"
)
PRONOUNS = r"who(?:m)?(?:so)?ever|he|him|his|she|her|said|told"
BANNED = re.compile(rf"(?<![a-z])(?:{METAPHORS}|{PRONOUNS})(?![a-z])", re.IGNORECASE)
# Keys of JSON output, which programs read.
KEYS = re.compile(r"""(["'])(?:said|told)\1""")
NO_VERB = {"Whether", "As", "Its", "This", "Was", "Has", "Is", "Always", "Does", "Perhaps", "Others", "Messages"}


def source(name: str) -> str:
    return (PACKAGE / name).read_text()


def above_limits() -> dict[str, str]:
    """Returns what is above a limit, by ``file`` or ``file:name``, with its size."""
    found = {}
    for name in NAMES:
        text = source(name)
        if (lines := text.count("\n")) > LONGEST_FILE:
            found[name] = f"{lines} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body)
                fields = sum(isinstance(part, ast.AnnAssign) for part in node.body)
                if methods > MOST_METHODS or fields > MOST_FIELDS:
                    found[f"{name}:{node.name}"] = f"{methods} methods, {fields} fields"
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONGEST_FUNCTION:
                    found[f"{name}:{node.name}"] = f"{lines} lines"
    return found


def test_files_classes_structs_and_functions_are_small_but_for_the_exceptions_with_a_reason():
    found = above_limits()
    assert {name: size for name, size in found.items() if name not in EXCEPTIONS} == {}
    assert sorted(EXCEPTIONS) == sorted(found), "an exception that is none any more leaves the list"


def test_a_file_name_outside_the_command_line_stands_once_but_for_a_short_list():
    counted = Counter(path.name for path in FILES if path.parent.name != "cli" and path.name != "__init__.py")
    assert {name for name, count in counted.items() if count > 1} == set(SHARED_FILE_NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_text_uses_plain_words(name):
    found = [
        f"{name}:{number}: {match.group()}"
        for number, line in enumerate(source(name).splitlines(), 1)
        for match in BANNED.finditer(KEYS.sub("", line))
    ]
    assert found == []


@pytest.mark.parametrize("name", NAMES)
def test_a_functions_docstring_begins_with_a_verb(name):
    found = [
        f"{name}:{node.lineno}: {node.name}: {first}"
        for node in ast.walk(ast.parse(source(name)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not any(is_exempt(ast.unparse(decorator)) for decorator in node.decorator_list)
        and (first := (ast.get_docstring(node) or "Is").split()[0])
        and ast.get_docstring(node)
        and (first.rstrip(",:") in NO_VERB or not re.fullmatch(r"[A-Z][a-z]+s[,:]?|See", first))
    ]
    assert found == []


def is_exempt(decorator: str) -> bool:
    """Returns whether what it decorates is named by a noun or an imperative: a property, a command of the CLI."""
    return decorator.endswith(("property", ".setter")) or "command" in decorator or "group(" in decorator


def test_test_names_use_plain_words():
    names = [
        f"{path.relative_to(TESTS)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in re.findall(r"def (test_\w+)", path.read_text())
        if BANNED.search(name)
    ]
    assert names == []
