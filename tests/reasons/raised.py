"""Which reasons the product's code raises or answers, read from its source.

An error's class counts wherever its name stands as a value, and so does a member of Reason: raised, handed to what
raises it, answered, written into a header. What only recognises a reason does not: an ``except``, an ``isinstance``,
a comparison, a key of a table, a member of a set, an annotation.
"""

from __future__ import annotations

import ast
from pathlib import Path

import trigmon
from trigmon.mq.errors import BY_REASON
from trigmon.mq.reasons import Reason

ROOT = Path(trigmon.__file__).parent
WORDS = {ROOT / "mq" / "errors.py", ROOT / "mq" / "reasons.py", ROOT / "mqi" / "mqi_numbers.py"}
"""These say which there are."""

_REASON_OF = {kind.__name__: kind.reason for kind in BY_REASON.values()}


class Reader(ast.NodeVisitor):
    """Reads one file."""

    def __init__(self) -> None:
        self.found: set[Reason] = set()
        self._classes: dict[str, Reason] = {}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.module == "trigmon.mq.errors":
            for name in node.names:
                if name.name in _REASON_OF:
                    self._classes[name.asname or name.name] = _REASON_OF[name.name]

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in self._classes:
            self.found.add(self._classes[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        of = node.value.id if isinstance(node.value, ast.Name) else ""
        if of == "errors" and node.attr in _REASON_OF:
            self.found.add(_REASON_OF[node.attr])
        elif of == "Reason" and node.attr in Reason.__members__:
            self.found.add(Reason[node.attr])
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            self.visit(node.args[0])
            return
        if isinstance(node.func, ast.Name) and node.func.id == "Refused":
            numbers = [k.value.value for k in node.keywords if k.arg == "reason" and isinstance(k.value, ast.Constant)]
            self.found.update(map(Reason, numbers))
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._visit_all(node.body)

    def visit_Compare(self, node: ast.Compare) -> None:
        pass

    def visit_Set(self, node: ast.Set) -> None:
        pass

    def visit_Dict(self, node: ast.Dict) -> None:
        self._visit_all(node.values)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_all([*node.args.defaults, *node.args.kw_defaults, *node.body])

    def _visit_all(self, nodes: list[ast.expr | None] | list[ast.expr] | list[ast.stmt]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)


def in_source(text: str) -> set[Reason]:
    """The reasons that a file's text raises or answers, but for NONE."""
    reader = Reader()
    reader.visit(ast.parse(text))
    return reader.found - {Reason.NONE}


def by_the_product() -> dict[Reason, list[str]]:
    """Each reason with the files that raise or answer it."""
    found: dict[Reason, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path not in WORDS:
            for reason in in_source(path.read_text()):
                found.setdefault(reason, []).append(str(path.relative_to(ROOT)))
    return found
