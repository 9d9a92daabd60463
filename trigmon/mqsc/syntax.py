"""What a command may say, from the tables: the answer to one that says something else."""

from __future__ import annotations

from trigmon.mq.attributes import ATTRIBUTES, Attribute
from trigmon.mq.enums import ObjectType
from trigmon.mqsc.keywords import OBJECTS, words_shown


def valid_syntax(verb: str, noun: str) -> list[str]:
    """Returns a command's shape in MQ's brackets, one parameter a line."""
    head = f"{verb} {noun}" if noun == "QMGR" else f"{verb} {noun}( name )"
    return [f"  {head}", *(f"   [ {parameter} ]" for parameter in _parameters(verb, noun))]


def _parameters(verb: str, noun: str) -> list[str]:
    if verb == "DISPLAY":
        where = [] if noun == "QMGR" else ["WHERE( keyword operator value )"]
        status = ["TYPE( QUEUE | HANDLE )", "OPENTYPE( ALL | INPUT | OUTPUT )"] if noun == "QSTATUS" else []
        shown = words_shown(noun) | (words_shown(noun, "HANDLE") if noun == "QSTATUS" else frozenset())
        return ["ALL", *where, *status, *sorted(shown)]
    if verb == "DELETE" and noun == "QLOCAL":
        return ["PURGE | NOPURGE"]
    if verb == "REFRESH":
        return ["TYPE( EXPIRY )", "OBJECT( generic-name )"]
    if verb in ("DEFINE", "ALTER") and noun in (*OBJECTS, "QMGR"):
        writable = [a for a in ATTRIBUTES[ObjectType[noun]].values() if not a.read_only]
        own = [_parameter(attribute) for attribute in sorted(writable, key=lambda a: a.mqsc)]
        return [*own, *(["LIKE( name )", "REPLACE | NOREPLACE"] if verb == "DEFINE" else [])]
    return []


def _parameter(attribute: Attribute) -> str:
    if attribute.flags:
        return " | ".join(reversed(attribute.flags))
    if attribute.words:
        kinds = [*attribute.words, *(["integer"] if attribute.user_range else [])]
        return f"{attribute.mqsc}( {' | '.join(kinds)} )"
    if attribute.is_names:
        return f"{attribute.mqsc}( name ... )"
    return f"{attribute.mqsc}( {'string' if attribute.is_text else 'integer'} )"
