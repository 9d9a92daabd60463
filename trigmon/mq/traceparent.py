"""The traceparent of W3C Trace Context: the trace that a message belongs to, and the span that put it.

Its form is ``00-TRACE-SPAN-FLAGS`` in lower-case hexadecimal digits: 32 of the trace, 16 of the span, 2 of the flags,
of which the last bit says that the trace is recorded (https://www.w3.org/TR/trace-context/#traceparent-header).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

TRACEPARENT: Final = "TRACEPARENT"
"""The environment variable by which a program learns it, the convention of OpenTelemetry for processes."""
_FORM: Final = "00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
_RECORDED: Final = "01"


def is_traceparent(text: str) -> bool:
    """Returns whether a text has the form, with a trace and a span."""
    return re.fullmatch(_FORM, text) is not None


def within(traceparent: str, trace: str, span: str) -> str:
    """Returns the traceparent of a span in the same trace; of a recorded trace of its own where there is none yet."""
    found = re.fullmatch(_FORM, traceparent)
    return f"00-{found[1]}-{span}-{found[3]}" if found else f"00-{trace}-{span}-{_RECORDED}"


ENDPOINT: Final = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
"""The variable of OpenTelemetry that says where spans are sent."""
_EXPORTERS: Final = "OTEL_TRACES_EXPORTER"
"""The variable of OpenTelemetry that names exporters, with commas between: otlp without it; none is for none."""
_ENDPOINTS: Final = (ENDPOINT, "OTEL_EXPORTER_OTLP_ENDPOINT")


def names_exporter(environ: Mapping[str, str]) -> bool:
    """Returns whether variables of OpenTelemetry say where spans are to be sent: without one of them none is."""
    is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    is_ours = "otlp" in (environ.get(_EXPORTERS) or "otlp").split(",")
    return not is_off and is_ours and any(map(environ.get, _ENDPOINTS))
