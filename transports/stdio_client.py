"""The client's end of stdio: a server that is started as a child process, and ended with all that it started."""

import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio.abc import TaskGroup

from mcpcore.abc import Channel, ChannelInfo
from mcpcore.exceptions import ServerExited, TransportError
from mcpcore.protocol.framing import MAX_MESSAGE_SIZE
from mcpcore.protocol.messages import Incoming, Outgoing
from mcpcore.transports._descriptors import Input, Output, read_on
from mcpcore.transports._stderr import StderrDrain, StderrTarget
from mcpcore.transports.stdio import StdioChannel

__all__ = ["INHERITED", "StdioClientTransport", "stdio"]

logger = logging.getLogger("mcpcore.transports.stdio")

INHERITED: Final = (
    frozenset({
        "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
    })
    if sys.platform == "win32"
    else frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"})
)  # fmt: skip
"""The environment variables that a server gets from this process, besides ``LC_*``: what programs need to run at all.
Others can hold secrets that are none of the server's business."""

_EXIT_GRACE: Final = 1.0  # seconds for a server that has closed its end to exit, so that its status can be reported
_REAP: Final = 2.0  # seconds for the system to end a process that was killed
_POLL: Final = 0.02  # seconds between two looks, where nothing can be waited for
_SIGKILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)


class StdioClientTransport:
    """Starts a server and talks to it through its standard input and output.

    The server runs in a session of its own, so Ctrl-C in our terminal does not reach it. Closing follows the
    specification (2026-07-28, basic/transports/stdio, "Shutdown"): its input is closed; what has not ended after
    ``terminate_after`` seconds gets SIGTERM, and what has not ended ``kill_after`` seconds later SIGKILL, together
    with all processes that it started in its group. (On Windows, where there are no groups, only the server itself is
    ended.)

    The channel has an attribute ``failure``: None, or the `ServerExited` that says why `Channel.receive` or
    `Channel.send` raised `anyio.BrokenResourceError`, whose cause it also is.

    Args:
        command: A program, looked up in ``PATH``.
        args: Its arguments; no shell reads them.
        env: Environment variables for the server, in addition to those of `INHERITED`, and stronger.
        cwd: The directory to start it in; by default ours.
        inherit_env: Pass on the whole environment of this process, secrets included.
        stderr: Where what the server writes to its standard error goes: a file, or a function that is called with
            each line; by default `sys.stderr`, as far as there is one. If it raises, that is logged and it gets no
            more. The last 4 KiB are kept in any case, for `ServerExited`.
        max_message_size: Bytes of one message received; a longer one is reported and skipped.
        terminate_after: Seconds.
        kill_after: Seconds.
    """

    def __init__(
        self,
        command: str | os.PathLike[str],
        *args: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        inherit_env: bool = False,
        stderr: StderrTarget = None,
        max_message_size: int = MAX_MESSAGE_SIZE,
        terminate_after: float = 2.0,
        kill_after: float = 2.0,
    ) -> None:
        self._command = [os.fspath(part) for part in (command, *args)]
        self._env = dict(env or {})
        self._cwd = cwd
        self._inherit_env = inherit_env
        self._stderr = stderr
        self._max_message_size = max_message_size
        self._terminate_after = terminate_after
        self._kill_after = kill_after

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[Channel]:
        """Start the server. It is ended when the context ends, in bounded time even if cancelled.

        Raises:
            TransportError: It cannot be started.
        """
        server = self._start()
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        try:
            tasks.start_soon(server.run)
            try:
                yield server
            finally:
                await server.aclose()
        finally:
            # What the body raised is kept from the group, which would wrap it. Its task raises nothing; it is waited
            # for even if we are cancelled.
            await tasks.__aexit__(None, None, None)

    def _start(self) -> "_ServerChannel":
        environ = _environment(self._env, inherit=self._inherit_env)
        command = self._command
        if sys.platform == "win32":  # where only shutil knows of .cmd and the like
            command = [shutil.which(command[0], path=environ.get("PATH")) or command[0], *command[1:]]
        try:
            process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self._cwd,
                env=environ,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except (OSError, ValueError, TypeError) as error:
            raise TransportError(self._why_not_started(error)) from error
        return _ServerChannel(
            process,
            command=shlex.join(self._command),
            stderr=self._stderr,
            max_message_size=self._max_message_size,
            terminate_after=self._terminate_after,
            kill_after=self._kill_after,
        )

    def _why_not_started(self, error: Exception) -> str:
        command = self._command[0]
        if self._cwd is not None and not os.path.isdir(self._cwd):
            return f"cannot start {command!r}: there is no directory {os.fspath(self._cwd)!r} to start it in"
        if isinstance(error, FileNotFoundError):
            reason = "there is no such command"
            if " " in command:
                reason += "; pass its arguments one by one: stdio('python', 'server.py')"
            return f"cannot start {command!r}: {reason}"
        return f"cannot start {command!r}: {error}"


stdio = StdioClientTransport


class _ServerChannel:
    """The channel to a server that runs as our child.

    One task, `run`, belongs to the process and ends it. It is shielded and never runs in a task of the user's, so no
    cancellation, not even `asyncio.Task.cancel`, can leave a process behind.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        *,
        command: str,
        stderr: StderrTarget,
        max_message_size: int,
        terminate_after: float,
        kill_after: float,
    ) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.failure: ServerExited | None = None
        self._process = process
        self._pipes = process.stdin, process.stdout, process.stderr
        self._command = command
        self._terminate_after = terminate_after
        self._kill_after = kill_after
        self._channel = StdioChannel(
            Input(process.stdout.fileno(), shared=False),
            Output(process.stdin.fileno(), shared=False),
            max_message_size=max_message_size,
        )
        self._stderr = StderrDrain(Input(process.stderr.fileno(), shared=False), stderr)
        self._group_is_empty = False
        self._closed = False
        self._closing = anyio.Event()
        self._exited = anyio.Event()
        self._ended = anyio.Event()

    @property
    def info(self) -> ChannelInfo:
        return self._channel.info

    async def receive(self) -> list[Incoming]:
        try:
            return await self._channel.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            await self._explain()
            raise

    async def send(self, messages: list[Outgoing]) -> None:
        try:
            await self._channel.send(messages)
        except anyio.BrokenResourceError:
            await self._explain()
            raise

    async def aclose(self) -> None:
        """See `Channel.aclose`. Returns when the server has ended; cancelled, it ends all the same."""
        if not self._closed:
            self._closed = True
            await self._channel.aclose()
            self._closing.set()
        await self._ended.wait()

    async def _explain(self) -> None:
        """A pipe has ended. Raise what is known better, once the server had a moment to exit."""
        with anyio.move_on_after(_EXIT_GRACE):
            await self._exited.wait()
        if self._closed:
            raise anyio.ClosedResourceError
        if self.failure is not None:
            raise anyio.BrokenResourceError from self.failure

    async def run(self) -> None:
        """Look after the process until `aclose` is called, then end it."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._stderr.run)
                tasks.start_soon(self._watch)
                await self._closing.wait()
                await self._end_server(tasks)
                tasks.cancel_scope.cancel()
            self._stderr.close()
            for pipe in self._pipes:
                pipe.close()
        self._ended.set()

    async def _watch(self) -> None:
        """Notice the server's exit, also when a process that it has started keeps its pipes open."""
        await _exit_of(self._process)
        self._signal(signal.SIGTERM)
        self._stderr.finish()
        if not self._closed:
            self.failure = ServerExited(self._command, self._process.returncode, self._stderr.tail)
        self._channel.finish()
        self._exited.set()

    async def _end_server(self, tasks: TaskGroup) -> None:
        stdin, stdout, _ = self._pipes
        stdin.close()
        unread = Input(stdout.fileno(), shared=False)
        tasks.start_soon(read_on, unread, len)  # a server that is stuck in a write could not exit
        with anyio.move_on_after(self._terminate_after):
            await self._exited.wait()
        if self._signal(signal.SIGTERM):
            with anyio.move_on_after(self._kill_after):
                while self._signal(0):  # noqa: ASYNC110 - a group has no descriptor to wait for
                    await anyio.sleep(_POLL)
            self._signal(_SIGKILL)
            with anyio.move_on_after(_REAP):
                await self._exited.wait()
        if not self._exited.is_set():
            logger.warning("%s does not end; it is left behind as process %d", self._command, self._process.pid)
        unread.close()

    def _signal(self, number: int) -> bool:
        """Send a signal to the server and its group, or none for 0. Returns whether anybody is left in it."""
        if sys.platform == "win32":
            if number:
                self._process.terminate()
            return self._process.poll() is None
        if self._group_is_empty:
            return False
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            self._group_is_empty = True  # from now on its number may be given to others
            return False
        except PermissionError:
            pass  # there is somebody, who has become another user
        return True


async def _exit_of(process: subprocess.Popen[bytes]) -> None:
    """Wait until ``process`` has exited, with no thread, and no regard to pipes that its children hold open."""
    if sys.platform == "linux":
        try:
            fd = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            pass  # an old system, or a sandbox
        else:
            try:
                await anyio.wait_readable(fd)
            finally:
                os.close(fd)
    while process.poll() is None:  # noqa: ASYNC110 - where there is nothing to wait for
        await anyio.sleep(_POLL)


def _environment(env: Mapping[str, str], *, inherit: bool) -> dict[str, str]:
    """Return the environment of a server. Shell functions, which some shells export as ``() {``, are not variables."""
    if inherit:
        return {**os.environ, **env}
    inherited = {
        name: value
        for name, value in os.environ.items()
        if (name in INHERITED or name.startswith("LC_")) and not value.startswith("()")
    }
    return {**inherited, **env}
