"""The data source with a diary: which of its reader's methods Spark calls, in which order and process."""

from __future__ import annotations

import json
import os
from pathlib import Path

from trigmon.spark.reader import QueueStreamReader
from trigmon.spark.source import DefaultSource


def write(diary, **entry):
    with Path(diary).open("a") as file:
        file.write(json.dumps(entry | {"pid": os.getpid()}) + "\n")


def entries(diary):
    return [json.loads(line) for line in Path(diary).read_text().splitlines()]


class RecordedSource(DefaultSource):
    """The data source with an option more, ``diary``, which is a file."""

    def __init__(self, options):
        self.diary = options["diary"]
        super().__init__({name: value for name, value in options.items() if name != "diary"})

    @classmethod
    def name(cls):
        return "recorded"

    def streamReader(self, schema):  # noqa: N802
        plain = super().streamReader(schema)
        reader = RecordedReader(plain.options, plain.schema)
        reader.diary = self.diary
        return reader


class RecordedReader(QueueStreamReader):
    def initialOffset(self):  # noqa: N802
        write(self.diary, call="initialOffset")
        return super().initialOffset()

    def prepareForTriggerAvailableNow(self):  # noqa: N802
        write(self.diary, call="prepare")
        super().prepareForTriggerAvailableNow()

    def latestOffset(self, start, limit):  # noqa: N802
        end = super().latestOffset(start, limit)
        write(self.diary, call="latestOffset", start=start["reservation"], end=end["reservation"])
        return end

    def partitions(self, start, end):
        write(self.diary, call="partitions", start=start["reservation"], end=end["reservation"])
        return super().partitions(start, end)

    def commit(self, end):
        write(self.diary, call="commit", end=end["reservation"])
        super().commit(end)

    def stop(self):
        write(self.diary, call="stop")
        super().stop()
