"""Settings of Spark as options of SparkSubmit."""

from __future__ import annotations

from collections.abc import Mapping


def conf_options(settings: Mapping[str, str]) -> list[str]:
    """Returns ``--conf name=value`` for each setting, in their order."""
    return [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
