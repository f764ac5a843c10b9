"""What all client programs do: call ``add`` again and again, check every result, and say how long it took."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable

WARM_UP = 0.15  # seconds


async def measure(call: Callable[[int], Awaitable[str]], window: int, seconds: float) -> None:
    """Warm up, make as many calls as fill about ``seconds``, and print the report.

    Args:
        call: Calls ``add`` with its argument and 7; returns the text of the result, or raises.
        window: How many calls are made at a time.
        seconds: 0 only checks a few hundred calls.
    """
    batch = max(window, 200)
    while (took := await run(call, window, batch)) < WARM_UP and seconds:
        batch *= 2
    calls = max(batch, int(batch / took * seconds))
    cpu = time.process_time()
    took = await run(call, window, calls)
    print(json.dumps({"calls": calls, "seconds": took, "cpu": time.process_time() - cpu}))


async def run(call: Callable[[int], Awaitable[str]], window: int, calls: int) -> float:
    """Make ``calls`` calls, ``window`` at a time. Returns the seconds they took."""
    numbers = iter(range(calls))

    async def one_after_another() -> None:
        for number in numbers:
            text = await call(number)
            if text != str(number + 7):
                raise SystemExit(f"{number} + 7 is not {text!r}")

    started = time.perf_counter()
    if window == 1:
        await one_after_another()
    else:
        await asyncio.gather(*(one_after_another() for _ in range(window)))
    return time.perf_counter() - started
