"""A task as a worker runs it: it gets its reader and its partition, and reads as a user who may read no file here.

It tells the data of each batch in a line, and goes on to the next one at a line of its input.
"""

import codecs
import json
import os
import pickle
import sys

import trigmon.client.reconnectable
import trigmon.client.tls
import trigmon.spark.reader  # noqa: F401 - all that is imported later could not be read any more

NOBODY = 65534


def main():
    reader, partition = pickle.load(sys.stdin.buffer)
    codecs.lookup("idna")
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    for batch in reader.read(partition):
        data = [int(bytes(row).rstrip(b".")) for row in batch.column("data").to_pylist()]
        print(json.dumps(data), flush=True)
        sys.stdin.buffer.readline()


if __name__ == "__main__":
    main()
