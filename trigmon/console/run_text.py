"""What a run's record means to a person: its latencies, and how far its Spark application is."""

from __future__ import annotations

from typing import Any

from trigmon.mq.quantities import counted, number
from trigmon.mq.run import Run


def latencies(run: Run) -> dict[str, float]:
    """Returns the latencies of a run's start in seconds, as far as they are known.

    ``submit_s``: from the get of its trigger message to its process, with the time it was held. From its process:
    ``start_s`` to the start of its Spark application, ``first_row_s`` to its first message, else to its first task
    with rows.
    """
    start, first = run.program.start_ms, run.work.first_get_ms or run.spark.first_rows_ms
    spans = {"submit_s": (run.origin.recorded_ms, start), "start_s": (start, run.spark.application_ms)}
    spans["first_row_s"] = (start, first)
    return {name: (until - since) / 1000 for name, (since, until) in spans.items() if since and until}


def progress_text(run: Run) -> str:
    """Returns how far a run is on its queue, and its Spark application; "" where nothing is known."""
    return "; ".join(filter(None, (work_text(run), _spark_text(run))))


def work_text(run: Run) -> str:
    """Returns what a run has taken from its queue and, while it has a program, what is left; "" before it took any.

    The queue manager counts it as the program's calls come, so it costs the program nothing.
    """
    work = run.work
    if not work.taken:
        return ""
    if run.rows_per_s is None:
        done = [f"{number(work.taken)} taken"]
    else:
        batches = "1 batch" if work.batches == 1 else f"{number(work.batches)} batches"
        done = [batches, counted(work.committed, "row"), f"{number(round(run.rows_per_s))} rows/s"]
    return ", ".join([*done, f"{number(run.left)} left"] if run.left is not None else done)


def spark_progress(run: Run) -> dict[str, Any]:
    """Returns how far its Spark application was when last seen; {} where that is not known, and after its end.

    A driver takes its page along, so what was seen last is from before the end: often none of the stages was done.
    """
    return run.spark.progress or {} if not run.is_ended else {}


def _spark_text(run: Run) -> str:
    """Returns the progress of its Spark application; "" where none is known."""
    seen = spark_progress(run)
    if not seen:
        return ""
    parts = [
        f"stages {seen.get('stages_done')}/{seen.get('stages')}",
        f"tasks {seen.get('tasks_done')}/{seen.get('tasks')}",
    ]
    if seen.get("tasks_failed"):
        parts.append(f"{seen['tasks_failed']} failed")
    if seen.get("rows_read") or seen.get("rows_written"):
        parts.append(f"rows {seen.get('rows_read')} in, {seen.get('rows_written')} out")
    return ", ".join(parts)
