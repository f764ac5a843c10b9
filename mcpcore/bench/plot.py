"""Line plots as SVG: enough for two curves over one axis each. Colours are classes, for the page to choose."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

__all__ = ["Axis", "Line", "draw", "log_ticks", "ticks"]

WIDTH: Final = 720
HEIGHT: Final = 300
LEFT: Final = 76
RIGHT: Final = 20
TOP: Final = 30
BOTTOM: Final = 46
ROUND: Final = (1, 2, 2.5, 5, 10)


@dataclass(frozen=True)
class Axis:
    """One direction of a plot.

    Attributes:
        title: What it shows.
        low, high: Its ends, in data.
        ticks: Where it is labelled.
        label: How.
        scale: What makes distances out of data.
    """

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    label: Callable[[float], str]
    scale: Callable[[float], float] = float

    def place(self, value: float) -> float:
        """Return where a value stands: 0 at the low end, 1 at the high one."""
        low, high = self.scale(self.low), self.scale(self.high)
        return (self.scale(value) - low) / (high - low) if high > low else 0.5


@dataclass(frozen=True)
class Line:
    """One curve.

    Attributes:
        name: For the legend.
        style: The class of its elements.
        points: Pairs of data; None in place of a value interrupts it.
        tip: What is shown for a point when somebody points at it.
    """

    name: str
    style: str
    points: Sequence[tuple[float, float | None]]
    tip: Callable[[float, float], str]


def ticks(high: float, count: int = 5) -> list[float]:
    """Return about ``count`` round numbers from 0 to beyond ``high``."""
    rough = (high or 1.0) / count
    magnitude = 10 ** math.floor(math.log10(rough))
    step = next(factor * magnitude for factor in ROUND if factor * magnitude >= rough * (1 - 1e-9))
    return [index * step for index in range(math.ceil(high / step - 1e-9) + 1)] if high else [0.0, step]


def log_ticks(low: float, high: float) -> list[float]:
    """Return round numbers for a logarithmic axis, from below ``low`` to beyond ``high``, both above 0."""
    factors = (1, 2, 5)
    found: list[float] = []
    for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        found += [factor * 10.0**exponent for factor in factors]
    start = max(index for index, value in enumerate(found) if value <= low * (1 + 1e-9))
    stop = next((index for index, value in enumerate(found) if value >= high * (1 - 1e-9)), len(found) - 1)
    return found[start : max(stop, start + 1) + 1]


def draw(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> str:
    """Return the plot as an ``svg`` element for a page.

    Args:
        title: What it shows, for who cannot see it.
        x, y: The axes.
        lines: At least one.
    """
    return "\n".join(_elements(title, x, y, lines))


def _elements(title: str, x: Axis, y: Axis, lines: Sequence[Line]) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def across(value: float) -> float:
        return LEFT + x.place(value) * (right - LEFT)

    def up(value: float) -> float:
        return bottom - y.place(value) * (bottom - TOP)

    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
    for value in y.ticks:
        yield f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{up(value):.1f}" y2="{up(value):.1f}"/>'
        yield f'<text class="tick" x="{LEFT - 8}" y="{up(value) + 4:.1f}" text-anchor="end">{escape(y.label(value))}</text>'
    for value in x.ticks:
        yield f'<line class="grid" x1="{across(value):.1f}" x2="{across(value):.1f}" y1="{TOP}" y2="{bottom}"/>'
        label = escape(x.label(value))
        yield f'<text class="tick" x="{across(value):.1f}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
    yield f'<text class="axis" x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x.title)}</text>'
    middle = (TOP + bottom) / 2
    yield f'<text class="axis" transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escape(y.title)}</text>'
    for line in lines:
        for piece in _pieces(line.points):
            points = " ".join(f"{across(key):.1f},{up(value):.1f}" for key, value in piece)
            yield f'<polyline class="line {line.style}" points="{points}"/>'
            for key, value in piece:
                tip = f"<title>{escape(line.tip(key, value))}</title>"
                at = f'cx="{across(key):.1f}" cy="{up(value):.1f}"'
                yield f'<circle class="point {line.style}" {at} r="6">{tip}</circle>'
    if len(lines) > 1:
        yield from _legend(lines)
    yield "</svg>"


def _legend(lines: Sequence[Line]) -> Iterator[str]:
    for index, line in enumerate(lines):
        left, top = LEFT + index * 90, TOP - 12
        yield f'<line class="line {line.style}" x1="{left}" x2="{left + 22}" y1="{top - 4}" y2="{top - 4}"/>'
        yield f'<text class="tick" x="{left + 28}" y="{top}">{escape(line.name)}</text>'


def _pieces(points: Sequence[tuple[float, float | None]]) -> Iterator[list[tuple[float, float]]]:
    """Yield what lies between the gaps."""
    piece: list[tuple[float, float]] = []
    for key, value in points:
        if value is not None:
            piece.append((key, value))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece
