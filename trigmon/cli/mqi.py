"""``trigmon mqi``: the C library by which programs written for IBM MQ run on trigmon."""

from __future__ import annotations

from pathlib import Path

import click

from trigmon.cli.command import command, group


@group("mqi", example="trigmon mqi path")
def mqi() -> None:
    """The MQI in C: libmqm_r.so and libmqic_r.so, for programs in C, Python, Node, Go or COBOL as they are.

    A program runs on it with LD_LIBRARY_PATH="$(trigmon mqi path)".
    """


@command("path", "trigmon mqi path\ntrigmon mqi path --beside-mq", group=mqi)
@click.option("--beside-mq", is_flag=True, help="Print it although other libraries of these names are on this machine.")
@click.option("--include", is_flag=True, help="Print the directory of the header cmqc.h instead, for cc -I.")
def path(beside_mq: bool, include: bool) -> None:
    """Print the directory of the library, for LD_LIBRARY_PATH.

    Nothing is printed, and it ends with 1, where the library is not built (trigmon mqi build), or where another one of
    its name is on this machine: the library of a real IBM MQ would be shadowed, and programs would speak to trigmon.
    """
    from trigmon.cli import output
    from trigmon.mqi import library

    if include:
        output.done(str(library.SOURCES), {"directory": str(library.SOURCES)})
        return
    found = library.find()
    if found is None:
        raise click.ClickException("the library is not built here: trigmon mqi build")
    others = library.others()
    if others and not beside_mq:
        raise click.ClickException(
            f"{others[0]} is on this machine, and a program with {found} in LD_LIBRARY_PATH would not use it; "
            "nothing is printed. --beside-mq prints it all the same"
        )
    if others:
        output.note(f"trigmon: warning: {others[0]} is shadowed for programs with this LD_LIBRARY_PATH")
    output.done(str(found), {"directory": str(found), "shadowed": [str(each) for each in others]})


@command("build", "trigmon mqi build\ntrigmon mqi build --directory ~/lib", group=mqi)
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path), help="Where to, if not to the cache.")
def build(directory: Path | None) -> None:
    """Compile the library with this machine's C compiler, and print its directory.

    A wheel that was built where a compiler was has it already.
    """
    from trigmon.cli import output
    from trigmon.mqi import library

    try:
        made = library.build(directory or library.built_directory())
    except library.BuildError as error:
        raise click.ClickException(str(error)) from None
    output.done(str(made), {"directory": str(made)})
