"""The wheel's build hook of the C library: compiles it where there is a compiler, and goes on where there is none.

hatchling loads this file by its path. An editable installation has no library in it: ``trigmon mqi build`` makes it.
"""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface[Any]):
    """Adds ``trigmon/mqi/lib`` to a wheel, which then is for this machine's kind alone."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the library and names its files; says on standard error why it is left out."""
        if self.target_name != "wheel" or version == "editable" or not sys.platform.startswith("linux"):
            return
        library = _library(Path(self.root))
        self._directory = tempfile.TemporaryDirectory(prefix="trigmon-mqi-")
        try:
            made = library.build(Path(self._directory.name))
        except (library.BuildError, OSError) as error:
            sys.stderr.write(f"trigmon: the MQI's C library is left out, all else is there: {error}\n")
            return
        for name in library.NAMES:
            build_data["force_include"][str(made / name)] = f"trigmon/mqi/lib/{name}"
        build_data["pure_python"] = False
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"


def _library(root: Path) -> ModuleType:
    """Returns the module that builds, loaded by its path: trigmon itself is not installed yet."""
    spec = importlib.util.spec_from_file_location("trigmon_mqi_library", root / "trigmon" / "mqi" / "library.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
