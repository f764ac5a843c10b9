"""A server that does what servers should not, when asked to. Usage: server.py [BACKEND [CODE before it runs]]."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Literal

import anyio

from mcpcore import Context, Limits, Server, ToolError

logger = logging.getLogger(__name__)
server = Server(
    "proof",
    version="1.2.3",
    instructions="Prove it.",
    limits=Limits(drain=float(os.environ.get("PROOF_DRAIN", "2"))),
)
running = 0


@server.tool
async def echo(text: str) -> str:
    """Give back the text."""
    return text


@server.tool
async def give(value: Any) -> Any:
    """Give back any value."""
    return value


ODD = {"nan": float("nan"), "infinity": float("inf"), "surrogate": "\ud800"}


@server.tool
async def give_odd_text(how: Literal["nan", "infinity", "surrogate"]) -> Any:
    """Return what JSON cannot hold, as text."""
    return ODD[how]


@server.tool(output_schema=True)
async def give_odd_structured(how: Literal["nan", "infinity", "surrogate"]) -> dict[str, Any]:
    """Return what JSON cannot hold, as structured content."""
    return {"odd": [ODD[how]]}


@server.tool
async def nothing() -> str:
    """Take no argument."""
    return "nothing"


@server.tool
async def optional(word: str = "default", number: int | None = None) -> str:
    """Take only arguments that need not be given."""
    return f"{word} {number}"


@server.tool
async def fill(size: int) -> str:
    """Make a text of that many bytes."""
    return "x" * size


@server.tool
async def sleep(seconds: float) -> str:
    """Wait without blocking."""
    global running
    running += 1
    try:
        await anyio.sleep(seconds)
    finally:
        running -= 1
    return "slept"


@server.tool
async def count_running() -> int:
    """Tell how many calls of ``sleep`` have not ended."""
    return running


@server.tool
def block(seconds: float) -> str:
    """Block a worker thread."""
    time.sleep(seconds)
    return "blocked"


@server.tool
async def block_loop(seconds: float) -> str:
    """Block the event loop."""
    time.sleep(seconds)  # noqa: ASYNC251 - that is the point
    return "blocked"


@server.tool
async def sleep_in_loop_thread(seconds: float) -> str:
    """Block a thread of asyncio's own pool."""
    import asyncio

    await asyncio.to_thread(time.sleep, seconds)
    return "blocked"


@server.tool
def fork_and_signal() -> str:
    """Fork a child, end it by SIGTERM, and tell its status."""
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(tell, b"ready")
        while True:
            time.sleep(1)
    os.read(ready, 5)
    os.kill(pid, signal.SIGTERM)
    return str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


@server.tool
async def report(steps: int, ctx: Context) -> str:
    """Send progress and log messages."""
    for step in range(steps):
        await ctx.progress(step + 1, total=steps, message=f"step {step + 1}")
        await ctx.info(f"step {step + 1}")
    return "done"


@server.tool
def make_noise(how: Literal["print", "buffer", "descriptor", "shell", "child", "c"]) -> str:
    """Write to standard output in one of many ways, and read standard input, which is empty."""
    if how == "print":
        print("noise")
    elif how == "buffer":
        sys.stdout.buffer.write(b"noise\n")
        sys.stdout.buffer.flush()
    elif how == "descriptor":
        os.write(1, b"noise\n")
    elif how == "shell":
        os.system("echo noise; cat")
    elif how == "child":
        subprocess.run([sys.executable, "-c", "import sys; print('noise', sys.stdin.read())"], check=True)
    else:
        import ctypes

        ctypes.CDLL(None).puts(b"noise")
        ctypes.CDLL(None).fflush(None)
    return sys.stdin.read()


def square(number: int) -> int:
    print("noise of a worker", flush=True)
    return number * number


@server.tool
def pool(method: Literal["fork", "spawn"]) -> list[int]:
    """Share work between processes."""
    with multiprocessing.get_context(method).Pool(2) as workers:
        return workers.map(square, range(10))


@server.tool
async def fail(how: Literal["tool", "crash", "exit"]) -> str:
    """Fail."""
    if how == "tool":
        raise ToolError("it did not work")
    if how == "exit":
        raise SystemExit(3)
    raise RuntimeError("secret detail")


@server.tool
async def log() -> str:
    """Use Python's own logging at every level."""
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logger.log(level, "logged")
    return "logged"


@server.resource("proof://note", mime_type="text/plain")
async def note() -> str:
    """A note."""
    return "note"


@server.prompt
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Greet {name}."


def tick_for_ever() -> None:
    """Start a thread that keeps the process busy, and does not keep it alive."""

    def tick() -> None:
        while True:
            time.sleep(0.05)

    threading.Thread(target=tick, daemon=True).start()


if __name__ == "__main__":
    backend, code = [*sys.argv[1:], "asyncio", ""][:2] if len(sys.argv) < 3 else sys.argv[1:3]
    exec(code)  # noqa: S102 - a test says what
    server.run(backend=backend)
