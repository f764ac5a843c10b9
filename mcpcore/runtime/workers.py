"""Several processes that serve one address: the first keeps them, and each of the others is the same program again.

A worker comes, by the same code as its parent, to the same `Server.run`, finds there that it is a worker, and serves on the
sockets that its parent listens on. So it needs no other way to import what it serves, and it starts, serves and ends as a
server that is alone does. What joins the two is one socket: the worker says on it that it serves, and its end, by whatever
becomes of the parent, tells the worker to stop.
"""

import itertools
import logging
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
from msgspec import Struct

from mcpcore.exceptions import TransportError
from mcpcore.runtime.http import claim, listen
from mcpcore.runtime.process import run_until_signalled
from mcpcore.runtime.sealing import SECRET_VARIABLE
from mcpcore.versions import LEGACY_VERSIONS

if TYPE_CHECKING:
    from mcpcore.runtime.server import Server

__all__ = ["check_workers", "is_worker", "run_workers"]

logger: Final = logging.getLogger("mcpcore.server")

_VARIABLE: Final = "MCPCORE_WORKER"
_NOBODY: Final = "0 0"
_SERVES: Final = b"+"
_GRACE: Final = 4.0  # seconds beyond the drain time, in which a worker that can end has ended


def run_workers(
    server: "Server",
    transport: object,
    count: int,
    *,
    backend: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    **options: Any,
) -> None:
    """Serve with ``count`` processes until SIGINT, SIGTERM or SIGHUP; in a worker, be one of them.

    Args:
        server: The server; stateless, or without legacy revisions.
        transport: ``http``.
        count: Of processes that serve. One that ends is replaced.
        backend: Of the workers: ``asyncio`` or ``trio``.
        host: See `serve_http`.
        port: See `serve_http`.
        options: See `serve_http`.

    Raises:
        ValueError: The transport is another one, or ``count`` is below 1.
        TransportError: The server has sessions, the address is not free, a worker ended before it served, or the system
            cannot hand sockets to child processes.
        SystemExit: 128 plus the signal's number, after a signal.
    """
    check_workers(server, transport, count)
    post = _Post.given()
    if post is not None:
        _work(server, post, backend, host=host, **options)
        return
    patience = server.limits.drain + _GRACE
    crew = _Crew(count, host, port, patience)
    run_until_signalled(crew.run, crew.stop, patience, "asyncio")


def is_worker() -> bool:
    """This process is a worker that has not begun to serve."""
    return _Post.read() is not None


def check_workers(server: "Server", transport: object, count: int) -> None:
    """Raise what `run_workers` would raise before it does anything."""
    if count < 1:
        raise ValueError(f"workers={count}: give 1 or more")
    if transport != "http":
        raise ValueError(f"workers= is for the transport 'http', not {transport!r}")
    if not server.is_stateless and not set(server.versions).isdisjoint(LEGACY_VERSIONS):
        raise TransportError(
            "workers share no sessions, and legacy clients of this server have some: "
            "make it Server(state='stateless'), or leave legacy clients out with eras=('modern',)"
        )
    if sys.platform == "win32":
        raise TransportError("workers need POSIX; start several processes on ports of their own behind a balancer")


# -- the worker --------------------------------------------------------------------------------------------------


class _Post(Struct, frozen=True):
    """What a worker is given.

    Args:
        parent: The process that gave it. A program that a worker starts inherits its environment, and is no worker.
        control: Descriptor of the socket whose other end the parent has.
        listeners: Descriptors of the sockets to serve on.
    """

    parent: int
    control: int
    listeners: tuple[int, ...]

    @classmethod
    def read(cls) -> Self | None:
        """What this process was given, if it is a worker."""
        parent, control, *listeners = map(int, (os.environ.get(_VARIABLE) or _NOBODY).split())
        return cls(parent, control, tuple(listeners)) if parent == os.getppid() else None

    @classmethod
    def given(cls) -> Self | None:
        """Take what this process was given: nobody finds it again, in the environment or by inheriting descriptors."""
        post = cls.read()
        os.environ.pop(_VARIABLE, None)
        if post is not None:
            for descriptor in (post.control, *post.listeners):
                os.set_inheritable(descriptor, False)
        return post

    def write(self) -> str:
        return " ".join(map(str, (self.parent, self.control, *self.listeners)))


def _work(server: "Server", post: _Post, backend: str, **options: Any) -> None:
    with socket.socket(fileno=post.control) as control:
        control.setblocking(False)

        async def serve() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_stop_with_parent, control, server)
                sockets = [socket.socket(fileno=each) for each in post.listeners]
                await server.serve("http", sockets=sockets, task_status=_Report(control), **options)
                tasks.cancel_scope.cancel()

        run_until_signalled(serve, server.stop, server.limits.drain, backend, prefer_uvloop=True)


async def _stop_with_parent(control: socket.socket, server: "Server") -> None:
    await anyio.wait_readable(control)
    server.stop()


class _Report:
    """Tells the parent that this worker serves."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    def started(self, value: object = None) -> None:
        with suppress(OSError):  # the parent is gone, which `_stop_with_parent` notices
            self._control.send(_SERVES)


# -- their parent ------------------------------------------------------------------------------------------------


class _Crew:
    """The workers.

    Args:
        count: How many.
        host: Where to listen.
        port: 0 for any that is free.
        patience: Seconds for a worker to end by itself.
    """

    def __init__(self, count: int, host: str, port: int, patience: float) -> None:
        self._count = count
        self._address = host, port
        self._patience = patience
        self._scope: anyio.CancelScope  # needs a running event loop
        # `orig_argv` has the interpreter's own options, too.
        self._command = [sys.executable, *sys.orig_argv[1:]]
        self._environment = dict(os.environ)
        if not self._environment.get(SECRET_VARIABLE):  # a retry may reach another worker than the first request did
            self._environment[SECRET_VARIABLE] = secrets.token_urlsafe(32)

    def stop(self) -> None:
        """End them all."""
        self._scope.cancel()

    async def run(self) -> None:
        """Keep them until `stop`."""
        with ExitStack() as stack, anyio.CancelScope() as self._scope:
            shares = await self._listen()
            for each in itertools.chain(*shares):
                stack.enter_context(each)
            async with anyio.create_task_group() as tasks:
                for sockets in shares:
                    tasks.start_soon(self._keep, sockets)

    async def _listen(self) -> list[list[socket.socket]]:
        """Return the sockets of each worker.

        Where all have the same ones, an idle worker takes all connections that come together, and the others none. Linux
        spreads connections over sockets; those of a worker that died are kept for the one that takes its place.
        """
        host, port = self._address
        if sys.platform != "linux":
            return [await listen(host, port)] * self._count
        await claim(host, port)
        shares = [await listen(host, port, shared=True)]
        port = shares[0][0].getsockname()[1]
        while len(shares) < self._count:
            shares.append(await listen(host, port, shared=True))
        return shares

    async def _keep(self, sockets: Sequence[socket.socket]) -> None:
        while True:
            await self._have(sockets)

    async def _have(self, sockets: Sequence[socket.socket]) -> None:
        """Have one worker, until it ends by itself or this is cancelled."""
        near, far = socket.socketpair()
        with near:
            near.setblocking(False)
            with far:
                post = _Post(os.getpid(), far.fileno(), tuple(each.fileno() for each in sockets))
                process = await anyio.open_process(
                    self._command,
                    stdin=subprocess.DEVNULL,
                    stdout=None,
                    stderr=None,
                    env={**self._environment, _VARIABLE: post.write()},
                    pass_fds=(post.control, *post.listeners),
                )
            try:
                await anyio.wait_readable(near)
                serves = near.recv(1) == _SERVES
                status = await process.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    with suppress(OSError):  # some systems mind that the other end is gone
                        near.shutdown(socket.SHUT_WR)
                    with anyio.move_on_after(self._patience):
                        await process.wait()
                    if process.returncode is None:
                        logger.error("worker %d did not end; it is killed", process.pid)
                        process.kill()
                        await process.wait()
        if not serves:
            raise TransportError(f"a worker ended with status {status} before it served")
        logger.error("worker %d ended with status %d; another takes its place", process.pid, status)
