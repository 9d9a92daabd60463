"""``trigmon use``: the queue manager that this user means by default."""

from __future__ import annotations

import click

from trigmon.cli.command import command


@command("use", "trigmon use QM1\ntrigmon use\ntrigmon use --none")
@click.argument("name", default="")
@click.option("--none", "is_none", is_flag=True, help="Choose none again: the one that runs is meant.")
def use(name: str, is_none: bool) -> None:
    """Choose the queue manager that commands and programs of this user mean where nothing names one; show it.

    --qmgr, TRIGMON_QMGR and TRIGMON_QMGR_NAME come before it, a configuration file of the machine behind it.
    """
    from trigmon import paths
    from trigmon.cli import output
    from trigmon.mq.names import is_object_name

    if name and is_none:
        raise click.UsageError("either a name or --none")
    if name and not is_object_name(name):
        raise click.UsageError(f"{name!r} is no name of a queue manager: 1 to 48 of the characters A-Z a-z 0-9 . / _ %")
    file = paths.default_qmgr_file()
    if name:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{name}\n")
    elif is_none:
        file.unlink(missing_ok=True)
    chosen = paths.default_qmgr()
    text = f"{chosen} is meant by default" if chosen else "no queue manager is chosen: the one that runs is meant"
    output.done(f"{text} ({file})", {"q_mgr_name": chosen, "file": str(file)})
    if chosen and not _is_known(chosen):
        output.note(f"no queue manager {chosen} runs on this machine now, and no client.ini says where one is")


def _is_known(name: str) -> bool:
    """Returns whether a queue manager of this name runs here, as far as this user may see, or ``client.ini`` has it."""
    from trigmon import paths

    try:
        if paths.find_socket(name).exists():
            return True
    except PermissionError:
        return True
    from trigmon.client.tls import configured

    return bool(configured(name))
