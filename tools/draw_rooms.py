"""Draws docs/rooms.svg, the rooms of the house and who includes whom, from the includes themselves.

A room stands below all that it includes. An arrow goes from a room to one that it includes; one that follows
from others (cli uses base, by way of generate and model) is left out.
"""

import html
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURE = "docs/rooms.svg"

PUBLIC = "limpid"  # include/limpid
HOLDS = {
    PUBLIC: "the public headers",
    "base": "errors, mapped files, threads",
    "tensor": "shapes, views, quantised blocks",
    "checkpoint": "files to names and tensor views",
    "jinja": "chat templates: the interpreter",
    "tokenizer": "text to ids and back",
    "executor": "the ops: reference, cpu, gpu",
    "layouts": "names and keys, to ours",
    "model": "the transformer, once",
    "quantize": "smaller weights",
    "export": "files for other programs",
    "generate": "samplers, sessions, chat",
    "train": "tape, optimizers, microgpt",
    "insight": "probes, traces, explain",
    "server": "HTTP APIs, the web page",
    "cli": "the program limpid",
}

WIDTH, HEIGHT = 210, 52  # of a box
COLUMN, LEVEL = 240, 96  # from box to box
MARGIN = 12

Graph = dict[str, set[str]]


def includes_of(root: pathlib.Path) -> Graph:
    """For each room, the rooms whose headers its files include."""
    graph: Graph = {}
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        room = path.relative_to(root / "src").parts[0]
        matches = check_layers.INCLUDE.findall(path.read_text(encoding="utf-8"))
        included = {(quoted or public).split("/")[0] for quoted, public in matches}
        graph.setdefault(room, set()).update(included - {room})
        for other in included:
            graph.setdefault(other, set())
    return graph


def reachable(graph: Graph, room: str) -> set[str]:
    found = set(graph[room])
    for other in graph[room]:
        found |= reachable(graph, other)
    return found


def without_implied(graph: Graph) -> Graph:
    """The arrows that do not follow from others."""
    return {
        room: {a for a in above if not any(a in reachable(graph, b) for b in above)}
        for room, above in graph.items()
    }


def levels_of(graph: Graph) -> dict[str, int]:
    """The level of each room, 0 at the top: as low as those that include it allow."""
    users = {room: [r for r, above in graph.items() if room in above] for room in graph}

    def height(room: str) -> int:  # levels below it
        return 1 + max((height(user) for user in users[room]), default=-1)

    heights = {room: height(room) for room in graph}
    return {room: max(heights.values()) - heights[room] for room in graph}


def places_of(graph: Graph) -> dict[str, tuple[float, float]]:
    """The centre of each box. In a level, rooms stand in the order of what they include."""
    levels = levels_of(graph)
    places: dict[str, tuple[float, float]] = {}
    for level in range(max(levels.values()) + 1):
        rooms = [room for room in HOLDS if room in levels and levels[room] == level]

        def lean(room: str, level: int = level) -> tuple[float, bool]:
            xs = [places[above][0] for above in graph[room]]
            skips_a_level = any(levels[above] < level - 1 for above in graph[room])
            return (sum(xs) / len(xs) if xs else 0, skips_a_level)  # long arrows pass at the side

        rooms.sort(key=lean)  # stable: rooms that lean alike keep the order of HOLDS
        for i, room in enumerate(rooms):
            places[room] = ((i - (len(rooms) - 1) / 2) * COLUMN, level * LEVEL)
    return places


def svg_of(graph: Graph) -> str:
    arrows = without_implied(graph)
    places = places_of(arrows)
    left = min(x for x, _ in places.values()) - WIDTH / 2 - MARGIN
    top = -HEIGHT / 2 - MARGIN
    width = 2 * -left
    height = max(y for _, y in places.values()) + HEIGHT + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} {top:g} {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="sans-serif" text-anchor="middle">',
        "<title>The rooms of src/; an arrow goes from a room to one that it includes</title>",
        "<!-- made by tools/draw_rooms.py from the includes -->",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#5a6b7b"/></marker></defs>',
        f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" fill="#ffffff"/>',
    ]
    for room, above in sorted(arrows.items()):
        for other in sorted(above):
            (x, y), (to_x, to_y) = places[room], places[other]
            y, to_y = y - HEIGHT / 2, to_y + HEIGHT / 2
            turn = to_y + LEVEL - HEIGHT  # straight up to the gap below the other room
            bend = (LEVEL - HEIGHT) / 2
            lines.append(
                f'<path d="M{x:g},{y:g} V{turn:g} C{x:g},{turn - bend:g} {to_x:g},{to_y + bend:g} '
                f'{to_x:g},{to_y:g}" fill="none" stroke="#5a6b7b" stroke-width="1.5" '
                'marker-end="url(#head)"/>'
            )
    for room, (x, y) in sorted(places.items()):
        name = "include/limpid" if room == PUBLIC else f"src/{room}"
        lines += [
            f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
            'fill="#eaf1f7" stroke="#5a6b7b"/>',
            f'<text x="{x:g}" y="{y - 4:g}" font-size="15" font-weight="bold" fill="#1c2b39">{name}</text>',
            f'<text x="{x:g}" y="{y + 15:g}" font-size="12" fill="#1c2b39">{html.escape(HOLDS[room])}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    (ROOT / PICTURE).write_text(svg_of(includes_of(ROOT)), encoding="utf-8")
