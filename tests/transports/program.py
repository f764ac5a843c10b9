"""A program that serves on stdio: it echoes each message, after it has executed the Python code in it, if any.

Usage: program.py BACKEND [before CODE] [after CODE]. The code sees the names of this module.
"""

import asyncio  # noqa: F401 - for the code
import functools  # noqa: F401 - for the code
import json
import multiprocessing  # noqa: F401 - for the code
import os  # noqa: F401 - for the code
import signal  # noqa: F401 - for the code
import subprocess  # noqa: F401 - for the code
import sys
import threading  # noqa: F401 - for the code
import time  # noqa: F401 - for the code
from typing import Any

import anyio

from mcpcore.abc import Channel
from mcpcore.exceptions import RemoteProtocolError
from mcpcore.protocol.messages import Incoming, Kind, Outgoing
from mcpcore.transports.stdio_server import StdioServerTransport


async def answer(message: Incoming) -> bytes:
    if isinstance(message.problem, RemoteProtocolError):
        return b'{"problem":%d}' % message.problem.code
    if b'"exec"' not in message.data:
        return message.data
    names: dict[str, Any] = {**globals(), "result": None}
    exec(json.loads(message.data)["exec"], names)  # noqa: S102 - that is what this program is for
    if "run" in names:
        names["result"] = await names["run"]()
    return json.dumps({"result": names["result"]}).encode()


async def handler(channel: Channel) -> None:
    while True:
        try:
            messages = await channel.receive()
        except anyio.EndOfStream:
            return
        await channel.send([Outgoing(await answer(message), Kind.RESPONSE) for message in messages])


if __name__ == "__main__":
    backend, *rest = sys.argv[1:]
    code = dict(zip(rest[::2], rest[1::2], strict=True))
    exec(code.get("before", ""))  # noqa: S102 - the same
    anyio.run(StdioServerTransport().serve, handler, backend=backend)
    exec(code.get("after", ""))  # noqa: S102 - the same
