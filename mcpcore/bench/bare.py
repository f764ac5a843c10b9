"""As close to nothing as a server can be: it gives one reply to all requests, under the id of each, and reads nothing else.

How fast a driver is with this at the other end is the driver's own ceiling. All requests have the same size, with an id of
ten digits at the same place, and so have the replies.

    python bare.py stdio END BEFORE AFTER
    python bare.py http END BEFORE AFTER PORT

``END``: how many bytes stand behind the id in a request. ``BEFORE``, ``AFTER``: files with what stands before and behind the
id in a reply.
"""

import os
import select
import socket
import sys
from pathlib import Path

__all__ = ["on_pipes", "on_port"]

DIGITS = 10
CHUNK = 1 << 16


def on_pipes(end: int, before: bytes, after: bytes) -> None:
    """Serve standard input until it ends."""
    start, stop = -end - DIGITS, -end
    pieces: list[bytes] = []
    while data := os.read(0, CHUNK):
        pieces.append(data)
        if b"\n" not in data:
            continue
        lines = b"".join(pieces).split(b"\n")
        pieces = [lines.pop()]
        replies = memoryview(b"".join([b"%b%b%b" % (before, line[start:stop], after) for line in lines]))
        while replies:
            replies = replies[os.write(1, replies) :]


def on_port(end: int, before: bytes, after: bytes, port: int) -> None:
    """Serve HTTP/1.1 on a port of the loopback interface until a signal ends the process."""
    listening = socket.create_server(("127.0.0.1", port), backlog=1024, reuse_port=False)
    start, stop = -end - DIGITS, -end
    size = 0  # of a request, as soon as there is a first one
    connections: dict[int, tuple[socket.socket, bytearray]] = {}
    poll = select.epoll()
    poll.register(listening, select.EPOLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == listening.fileno():
                connection, _ = listening.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[connection.fileno()] = (connection, bytearray())
                poll.register(connection, select.EPOLLIN)
                continue
            connection, received = connections[descriptor]
            data = connection.recv(CHUNK)
            if not data:
                poll.unregister(connection)
                connections.pop(descriptor)[0].close()
                continue
            received += data
            size = size or size_of(received)
            if size and len(received) >= size:
                connection.sendall(before + received[start:stop] + after)
                received.clear()


def size_of(request: bytes | bytearray) -> int:
    """Return the size of a request with a length, or 0 if its head is not complete."""
    head, separator, _ = request.partition(b"\r\n\r\n")
    if not separator:
        return 0
    (length,) = [line.split(b":")[1] for line in head.splitlines() if line.lower().startswith(b"content-length:")]
    return len(head) + len(separator) + int(length)


if __name__ == "__main__":
    kind, behind, *names = sys.argv[1:]
    first, second = (Path(name).read_bytes() for name in names[:2])
    if kind == "stdio":
        on_pipes(int(behind) - 1, first, second)  # the end of a line is no part of it
    else:
        on_port(int(behind), first, second, int(names[2]))
