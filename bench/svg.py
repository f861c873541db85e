# SPDX-License-Identifier: Apache-2.0
"""Line and bar charts as SVG text, by hand: nothing to install.

A series is (name, values); a value is a number, or text that stands where the
mark would ("hung"), or None where nothing was measured.
"""
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 720, 360
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 64, 40
COLOURS = {"ours": "#0b7285", "nvidia": "#7950f2", "byhand": "#e8590c", "limit": "#adb5bd"}
OTHERS = ("#2f9e44", "#c2255c", "#1971c2", "#5c940d")
INK, FAINT = "#343a40", "#e9ecef"


def colour(name, at):
    return COLOURS.get(name, OTHERS[at % len(OTHERS)])


def ceiling(value):
    """A round number no less than the value, with the number of its ticks."""
    if value <= 0:
        return 1.0, 5
    unit = 10.0 ** len(str(int(value))) / 10 if value >= 1 else 0.01
    while unit * 10 <= value:
        unit *= 10
    for top, ticks in ((1, 5), (1.5, 3), (2, 4), (2.5, 5), (3, 3), (4, 4), (5, 5), (6, 3),
                       (8, 4), (10, 5)):
        if value <= unit * top:
            return unit * top, ticks
    return unit * 10, 5


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def text(x, y, words, size=12, anchor="middle", fill=INK, more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="{fill}"{more}>{escape(str(words))}</text>')


def line(x1, y1, x2, y2, stroke):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{stroke}"/>')


def height_at(value, top):
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top


def frame(title, unit, labels, series):
    """Everything but the marks: (parts, top of the axis, x of each label)."""
    values = [v for _, row in series for v in row if isinstance(v, (int, float))]
    top, ticks = ceiling(max(values, default=0))
    parts = [f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" fill="#ffffff"/>',
             text(LEFT - 40, 24, title, 16, "start", more=' font-weight="600"')]
    x = LEFT
    for at, (name, _) in enumerate(series):
        parts.append(f'<rect x="{x}" y="38" width="12" height="12" rx="2" '
                     f'fill="{colour(name, at)}"/>')
        parts.append(text(x + 18, 48, name, anchor="start"))
        x += 40 + 8 * len(name)
    parts.append(text(WIDTH - RIGHT, 48, unit, anchor="end"))
    for tick in range(ticks + 1):
        y = height_at(top * tick / ticks, top)
        parts.append(line(LEFT, y, WIDTH - RIGHT, y, FAINT))
        parts.append(text(LEFT - 8, y + 4, number(top * tick / ticks), 11, "end"))
    step = (WIDTH - LEFT - RIGHT) / max(len(labels), 1)
    xs = [LEFT + step * (at + 0.5) for at in range(len(labels))]
    for x, label in zip(xs, labels):
        parts.append(text(x, HEIGHT - BOTTOM + 18, label, 11))
    return parts, top, xs


def document(title, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" height="{HEIGHT}" role="img" '
            f'font-family="system-ui, sans-serif">\n<title>{escape(title)}</title>\n'
            + "\n".join(parts) + "\n</svg>\n")


def line_chart(title, unit, labels, series):
    parts, top, xs = frame(title, unit, labels, series)
    for at, (name, values) in enumerate(series):
        points = [(x, height_at(v, top)) for x, v in zip(xs, values)
                  if isinstance(v, (int, float))]
        dash = ' stroke-dasharray="6 5"' if name == "limit" else ""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour(name, at)}" '
                     f'stroke-width="2.5" stroke-linejoin="round"{dash}/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour(name, at)}"/>'
                  for x, y in points]
    return document(title, parts)


def bar(x, width, value, top, fill):
    if isinstance(value, str):
        y = HEIGHT - BOTTOM - 6
        turn = f' transform="rotate(-90 {x + width / 2 + 4:.1f} {y})"'
        return [text(x + width / 2 + 4, y, value, 11, "start", fill, turn)]
    y = height_at(value, top)
    return [f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{HEIGHT - BOTTOM - y:.1f}" rx="2" fill="{fill}"/>',
            text(x + width / 2, y - 4, number(value), 9)]


def bar_chart(title, unit, labels, series):
    parts, top, xs = frame(title, unit, labels, series)
    room = (WIDTH - LEFT - RIGHT) / max(len(labels), 1) * 0.84
    width = min(room / max(len(series), 1), 40)
    for at, (name, values) in enumerate(series):
        for x, value in zip(xs, values):
            if value is not None:
                left = x + width * (at - len(series) / 2)
                parts += bar(left + 1, width - 2, value, top, colour(name, at))
    return document(title, parts)
