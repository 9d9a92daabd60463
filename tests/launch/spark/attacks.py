"""What a stranger can say to the ports of a Spark process: Spark's own wire format, HTTP and gRPC, with no secret.

Standard library alone, so that it runs as any user. A frame of Spark's network library is its own length (8 bytes), a
type (1 byte), and what belongs to that type; text has its length before it (4 bytes).
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 - a link needs it, and a stranger may not read it any more
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

_RPC_REQUEST, _RPC_RESPONSE, _RPC_FAILURE, _STREAM_REQUEST, _STREAM_RESPONSE = 3, 4, 5, 6, 7
_UPLOAD_BLOCK = 1
_TIMEOUT_S = 30.0
_LISTENS = "0A"

# What a block's upload says of it: StorageLevel.MEMORY_ONLY and ClassTag.Byte, as Java writes Spark 4.3's
# BlockReplicationMetadata.
_METADATA = (
    b"\xac\xed\x00\x05sr\x007org.apache.spark.network.netty.BlockReplicationMetadata\xc3p?\x16\xa62\xa2"
    b"\xda\x02\x00\x04Z\x00\x14verifySealedChecksumL\x00\x08checksumt\x00\x0eLscala/Option;L\x00\x08cla"
    b"ssTagt\x00\x18Lscala/reflect/ClassTag;L\x00\x05levelt\x00'Lorg/apache/spark/storage/StorageLevel;"
    b"xp\x00sr\x00&scala.runtime.ModuleSerializationProxy\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x01L"
    b"\x00\x0bmoduleClasst\x00\x11Ljava/lang/Class;xpvr\x00\x0bscala.None$FP$\xf6S\xca\x94\xac\x02\x00"
    b"\x00xr\x00\x0cscala.Option\xfei7\xfd\xdb\x0eft\x02\x00\x00xpsr\x00*scala.reflect.ManifestFactory$"
    b"ByteManifest\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00xr\x00\x1cscala.reflect.AnyValManifest"
    b"\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x01L\x00\x08toStringt\x00\x12Ljava/lang/String;xpt\x00"
    b"\x04Bytesr\x00%org.apache.spark.storage.StorageLevela\xfa\xa3T\xe6yef\x0c\x00\x00xpw\x02\x05\x01x"
)


def _text(data):
    return struct.pack(">i", len(data)) + data


def _asked(address, kind, body):
    """The type of the answer to one frame, and what it holds; 0 where the link is cut."""
    with socket.create_connection(address, _TIMEOUT_S) as link, suppress(OSError, struct.error):
        link.sendall(struct.pack(">qb", 9 + len(body), kind) + body)
        link.shutdown(socket.SHUT_WR)  # a server that waits for more input must not: some servers here are not Spark's
        with link.makefile("rb") as answers:
            length, answer = struct.unpack(">qb", answers.read(9))
            if answer == _STREAM_RESPONSE:
                name = answers.read(*struct.unpack(">i", answers.read(4)))
                return answer, name, answers.read(*struct.unpack(">q", answers.read(8)))
            return answer, b"", answers.read(min(length - 9, 1 << 16))
    return 0, b"", b""


def uploads_a_block(address):
    """Whether a block could be put into the process's memory, from where its next broadcast would be read."""
    strings = (b"app", b"driver", b"broadcast_4000000000")
    block = b"".join(_text(each) for each in (*strings, _METADATA, b"a stranger's"))
    body = struct.pack(">qi", 1, len(block) + 1) + bytes([_UPLOAD_BLOCK]) + block
    return _asked(address, _RPC_REQUEST, body)[0] == _RPC_RESPONSE


def hears(address):
    """Whether the process reads what a stranger has sent as one of its own messages, and does not ask who sent it."""
    kind, _, reported = _asked(address, _RPC_REQUEST, struct.pack(">qi", 1, 4) + b"\0\0\0\0")
    return kind in (_RPC_RESPONSE, _RPC_FAILURE) and b"Sasl" not in reported


def fetched(address, name):
    """The file of this name that the process serves to its executors; None where it hands out nothing."""
    kind, _, data = _asked(address, _STREAM_REQUEST, _text(name.encode()))
    return data if kind == _STREAM_RESPONSE else None


def page(address, path="/api/v1/applications", headers=None):
    """The status of a page, 0 where no HTTP is spoken there."""
    more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n"
    with suppress(OSError, ValueError, IndexError), socket.create_connection(address, _TIMEOUT_S) as link:
        link.sendall(request.encode())
        with link.makefile("rb") as answer:
            return int(answer.readline().split()[1])
    return 0


def listeners(session, program=""):
    """The (address, port) on which processes of this session listen; only those whose executable is named so."""
    ours = set()
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            is_meant = entry.name.isdigit() and (entry / "exe").readlink().name.startswith(program)
            if is_meant and os.getsid(int(entry.name)) == session:
                for each in (entry / "fd").iterdir():
                    with suppress(FileNotFoundError):  # closed meanwhile
                        ours.add(str(each.readlink()))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS and f"socket:[{fields[9]}]" in ours:
                address, _, port = fields[1].partition(":")
                found.add((_address(address), int(port, 16)))
    return found


def _address(text):
    """An address of /proc/net/tcp: words of 4 bytes, each in this machine's order."""
    raw = b"".join(struct.pack("=I", int(text[at : at + 8], 16)) for at in range(0, len(text), 8))
    if raw[:12] == bytes(10) + b"\xff\xff":
        raw = raw[12:]
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)
