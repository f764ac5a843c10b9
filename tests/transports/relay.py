"""A server on stdio that passes everything on to a TCP port of this machine and back. Usage: relay.py PORT"""

import sys

import anyio

from mcpcore.abc import Channel
from mcpcore.protocol.messages import Kind, Outgoing
from mcpcore.transports.lines import TCPClientTransport
from mcpcore.transports.stdio_server import StdioServerTransport


async def handler(client: Channel) -> None:
    async with TCPClientTransport("127.0.0.1", int(sys.argv[1])).open() as server, anyio.create_task_group() as tasks:

        async def relay(source: Channel, target: Channel) -> None:
            try:
                while True:
                    await target.send([Outgoing(each.data, Kind.NOTIFICATION) for each in await source.receive()])
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                tasks.cancel_scope.cancel()  # whoever ends, this process does

        tasks.start_soon(relay, client, server)
        tasks.start_soon(relay, server, client)


anyio.run(StdioServerTransport().serve, handler)
