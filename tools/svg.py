"""Writes pictures as SVG text, with the standard library only: one shape per line, sizes in pixels.

A picture has a light background of its own, so that it can be read on a light and on a dark page.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

INK, SOFT, GRID = "#1d2440", "#5b6478", "#d5d9e4"
AHEAD, BEHIND = "#2f7d4f", "#c2562d"


class Picture:
    def __init__(self, width: int, height: int, title: str) -> None:
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" font-family="system-ui, Helvetica, Arial, sans-serif" font-size="13" '
            f'role="img" aria-label="{escape(title)}">',
            f'<rect width="{width}" height="{height}" rx="8" fill="#fcfcfd" stroke="{GRID}"/>',
        ]

    def text(self, x: float, y: float, text: str, *, size: int = 13, fill: str = INK, anchor: str = "start",
             bold: bool = False) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.lines.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" '
                          f'text-anchor="{anchor}"{weight}>{escape(text)}</text>')

    def rect(self, x: float, y: float, width: float, height: float, fill: str) -> None:
        self.lines.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = GRID) -> None:
        self.lines.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{stroke}"/>')

    def svg(self) -> str:
        return "\n".join([*self.lines, "</svg>"]) + "\n"


def shade(share: float) -> str:
    """A colour from pale yellow (0) over green to deep blue (1), lighter for less."""
    stops = [(253, 246, 220), (120, 190, 150), (30, 90, 130)]
    at = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    low = min(int(at), len(stops) - 2)
    part = at - low
    mixed = (round(a + (b - a) * part) for a, b in zip(stops[low], stops[low + 1]))
    return "#" + "".join(f"{value:02x}" for value in mixed)
