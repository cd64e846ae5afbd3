"""Holds the tree to the plan of docs/architecture.md. Exits with 1 and a line for each breach.

- A room under src/ includes only itself and rooms above it.
- There is one forward pass: one file outside tests and executors calls Executor::attention.
- No string of the library names a flag of the program.
- No file of src/ and include/ passes 400 lines (generated tables aside), none elsewhere 800; no more than 15 public
  headers.

    check_layers.py [ROOT]
"""

import pathlib
import re
import sys

MAX_LINES = {"src": 400, "include": 400}
MAX_LINES_ELSEWHERE = 800
MAX_PUBLIC_HEADERS = 15

# Who may include whom, in the order of the arrows. include/limpid is open to all.
ABOVE = {
    "base": (),
    "tensor": ("base",),
    "checkpoint": ("tensor",),
    "jinja": ("base",),
    "tokenizer": ("jinja",),
    "executor": ("tensor",),
    "layouts": ("checkpoint",),
    "model": ("layouts", "executor", "tokenizer"),
    "quantize": ("model",),
    "export": ("quantize",),
    "generate": ("quantize",),
    "train": ("generate", "export"),
    "insight": ("generate",),
    "server": ("generate", "insight"),
    "cli": ("train", "insight", "export", "server"),
}
C_FAMILY = {".h", ".hpp", ".cpp", ".cc", ".cu"}
SOURCES = {*C_FAMILY, ".py", ".sh", ".cmake"}
FOLDERS = ("include", "src", "tests", "bench", "fuzz", "examples", "python", "tools", "cmake")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<(limpid/[^>]+)>)', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
FLAG = re.compile(r"(?<![\w-])--[a-z]|\(-[a-z]+\)")
CALL_OF_ATTENTION = re.compile(r"(?:\.|->)\s*attention\s*\(")
EXECUTOR_OF_ITS_OWN = re.compile(
    r"\b(?:Executor|[A-Za-z]*Executor|Tape)::attention\s*\(|\battention\s*\([^;{]*\boverride\b"
)


def rooms_above(room: str) -> set[str]:
    found = {room}
    for other in ABOVE[room]:
        found |= rooms_above(other)
    return found


def check_includes(root: pathlib.Path, path: pathlib.Path, text: str) -> list[str]:
    """Breaches of the order of rooms by one file under include/, src/ or examples/."""
    relative = path.relative_to(root)
    top, room = relative.parts[0], relative.parts[1]
    if top == "src" and room not in ABOVE:
        return [f"{relative}: src/{room} is no room of tools/check_layers.py"]
    problems = []
    for quoted, public in INCLUDE.findall(text):
        included = quoted or public
        first = included.split("/")[0]
        if first == "limpid":
            if not (root / "include" / included).is_file():
                problems.append(f"{relative}: includes {included}, which is no public header")
        elif top in ("include", "examples"):
            problems.append(f"{relative}: includes {included}; only limpid/ headers are public")
        elif first not in ABOVE or not (root / "src" / included).is_file():
            problems.append(f'{relative}: includes "{included}"; write the path from src/')
        elif first not in rooms_above(room):
            problems.append(f"{relative}: {room} includes {included}, which lies below it")
    return problems


def check_one_forward_pass(sources: dict[pathlib.Path, str], root: pathlib.Path) -> list[str]:
    """The transformer is written once: all other callers of `attention` are executors that wrap another."""
    callers = [
        path.relative_to(root)
        for path, text in sources.items()
        if path.relative_to(root).parts[0] == "src"
        and CALL_OF_ATTENTION.search(code := COMMENT.sub("", text))
        and not EXECUTOR_OF_ITS_OWN.search(code)
    ]
    if len(callers) <= 1:
        return []
    return [
        f"{path}: a second forward pass (callers of attention: {len(callers)})" for path in callers
    ]


def check_messages(relative: pathlib.Path, text: str) -> list[str]:
    """Who reads a message of the library may never have seen the program."""
    if relative.parts[0] != "src" or relative.parts[1] == "cli":
        return []
    return [
        f'{relative}: the string "{string}" names a flag of the program'
        for string in STRING.findall(COMMENT.sub("", text))
        if FLAG.search(string)
    ]


def check(root: pathlib.Path) -> list[str]:
    problems = []
    sources = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES and path.is_file():
                sources[path] = path.read_text(encoding="utf-8")
    for path, text in sources.items():
        relative = path.relative_to(root)
        n_lines = text.count("\n")
        problems += check_messages(relative, text)
        generated = "_tables." in path.name or "generated" in path.name
        most = MAX_LINES.get(relative.parts[0], MAX_LINES_ELSEWHERE)
        if n_lines > most and not generated:
            problems.append(f"{relative}: {n_lines} lines, at most {most}")
        in_a_room = relative.parts[0] in ("include", "src") and len(relative.parts) > 2
        if path.suffix in C_FAMILY and (in_a_room or relative.parts[0] == "examples"):
            problems += check_includes(root, path, text)
    problems += check_one_forward_pass(sources, root)
    n_headers = sum(path.suffix in (".h", ".hpp") for path in (root / "include").rglob("*"))
    if n_headers > MAX_PUBLIC_HEADERS:
        problems.append(f"include/limpid: {n_headers} public headers, at most {MAX_PUBLIC_HEADERS}")
    return problems


def main() -> int:
    here = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here
    problems = check(root)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
