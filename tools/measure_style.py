"""Measures how the tree reads and prints the table of docs/architecture.md, "How it reads".

    measure_style.py              the table of this tree, and the size of each room
    measure_style.py --long       the files over 400 lines and the functions over 60, by name
    measure_style.py FOLDER...    the same measures of another C++ tree, its *_test* and *_benchmark* apart

Files are C and C++ sources and headers; generated tables (*_tables.*) are counted apart. A comment line begins
with // or lies in /* */; its share is of all lines that are not blank. A function's length counts its
signature and both braces. A repeated passage is a longest run of at least 8 equal lines (blank lines, comments,
includes and lone punctuation apart) that stands in two places.
"""

import argparse
import collections
import dataclasses
import itertools
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[1]
SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".c"}
MAX_FILE = 400
APART = ("train", "insight")  # rooms that are not counted as the engine
MAX_FUNCTION = 60
PASSAGE = 8

# What must not be read as code: comments, string and character literals (raw strings first).
LITERAL = re.compile(
    r'R"(?P<tag>[^()\\ ]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
    r"|//[^\n]*|/\*.*?\*/",
    re.DOTALL,
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n(?:[^\n\\]|\\.)*)*", re.MULTILINE)
TYPE = re.compile(r"\b(?:class|struct|union|enum)\b[^()=]*$")
# A head that ends like a function's: its parameters, then qualifiers, a trailing type, an initialiser list.
FUNCTION = re.compile(
    r"\)\s*(?:const|noexcept|override|final|mutable|&&?|\s)*(?:->.*|:[^:].*[)}])?$", re.DOTALL
)
# A member's braces in an initialiser list, of which the body is still to come.
INITIALISER = re.compile(r"\)\s*(?:noexcept\s*)?:[^:].*[\w>]$", re.DOTALL)


def blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def kind_of_scope(head: str, outer: list[tuple[str, int]]) -> str:
    if any(kind == "function" for kind, _ in outer) or TYPE.search(head):
        return "block"
    if INITIALISER.search(head):
        return "initialiser"
    return "function" if FUNCTION.search(head) else "block"


@dataclasses.dataclass
class Source:
    path: pathlib.Path
    text: str

    def n_lines(self) -> int:
        return self.text.count("\n")

    def is_generated(self) -> bool:
        return "_tables." in self.path.name

    def code(self) -> str:
        """The text with comments, literals and directives blanked, line by line as it was."""
        return DIRECTIVE.sub(blanked, LITERAL.sub(blanked, self.text))

    def comment_lines(self) -> tuple[int, int]:
        """Lines of comment, and lines that are not blank."""
        in_block = False
        n_comments = n_written = 0
        for line in map(str.strip, self.text.splitlines()):
            n_written += bool(line)
            n_comments += in_block or line.startswith(("//", "/*"))
            if in_block or line.startswith("/*"):
                in_block = "*/" not in line
        return n_comments, n_written

    def n_code(self) -> int:
        """Lines of code: neither blank nor of comment."""
        n_comments, n_written = self.comment_lines()
        return n_written - n_comments

    def functions(self) -> list[tuple[int, int, str]]:
        """(lines, first line, head) of each function with a body; lambdas belong to theirs."""
        found = []
        scopes: list[tuple[str, int]] = []  # kind, where the head begins
        code = self.code()
        begin = 0
        for match in re.finditer(r"[{};]|\b(?:public|private|protected)\s*:", code):
            if match[0] == "{":
                scopes.append((kind_of_scope(code[begin : match.start()].strip(), scopes), begin))
            elif match[0] == "}" and scopes:
                kind, head = scopes.pop()
                if kind == "initialiser":  # the head goes on
                    begin = head
                    continue
                if kind == "function":
                    text = code[head : match.end()].strip()
                    last = code.count("\n", 0, match.end()) + 1
                    n_lines = text.count("\n") + 1
                    found.append(
                        (n_lines, last - n_lines + 1, " ".join(text[: text.index("{")].split()))
                    )
            begin = match.end()
        return found

    def passages(self) -> list[tuple[int, str]]:
        """The lines that count when passages are compared, each with its number."""
        code = self.text.splitlines()
        lines = [(number, " ".join(line.split())) for number, line in enumerate(code, 1)]
        return [
            (number, line)
            for number, line in lines
            if re.search(r"\w", line) and not line.startswith(("//", "#include", "namespace"))
        ]


def sources_below(folders: list[pathlib.Path]) -> list[Source]:
    paths = sorted(
        path for folder in folders for path in folder.rglob("*") if path.suffix in SUFFIXES
    )
    return [
        Source(path, path.read_text(encoding="utf-8", errors="replace"))
        for path in paths
        if path.is_file()
    ]


def repeated_passages(sources: list[Source]) -> list[str]:
    """The first places of each run of PASSAGE or more lines that occurs twice."""
    windows = collections.defaultdict(list)
    lines = [source.passages() for source in sources]
    for i, numbered in enumerate(lines):
        for begin in range(len(numbered) - PASSAGE + 1):
            windows[tuple(line for _, line in numbered[begin : begin + PASSAGE])].append((i, begin))
    found = []
    for places in windows.values():
        for (i, a), (j, b) in itertools.pairwise(places):
            continues = a > 0 and b > 0 and lines[i][a - 1][1] == lines[j][b - 1][1]
            if not continues and not (i == j and b - a < PASSAGE):
                one, other = (
                    f"{sources[k].path.name}:{lines[k][n][0]}" for k, n in ((i, a), (j, b))
                )
                found.append(f"{one} ~ {other}")
    return found


def by_hand(sources: list[Source]) -> list[Source]:
    return [source for source in sources if not source.is_generated()]


def share_of_comments(sources: list[Source]) -> str:
    comments, written = map(sum, zip(*(source.comment_lines() for source in sources), strict=True))
    return f"{100 * comments / written:.0f} %"


@dataclasses.dataclass
class Measures:
    sources: list[Source]

    def row(self) -> list[str]:
        sources = by_hand(self.sources)
        lengths = sorted(source.n_lines() for source in sources)
        functions = [function for source in sources for function in source.functions()]
        n_long = sum(length > MAX_FUNCTION for length, _, _ in functions)
        return [
            str(len(lengths)),
            f"{statistics.median(lengths):.0f}",
            str(lengths[int(0.9 * (len(lengths) - 1) + 0.5)]),
            str(lengths[-1]),
            share_of_comments(sources),
            f"{statistics.median(length for length, _, _ in functions):.0f}",
            f"{n_long} of {len(functions)}",
            str(len(repeated_passages(sources))),
        ]


HEADINGS = [
    "",
    "files",
    "median",
    "90th percentile",
    "longest",
    "comment",
    "a function, median",
    "over 60 lines",
    "passages twice",
]


def print_table(headings: list[str], rows: list[list[str]]) -> None:
    for row in [headings, ["---"] * len(headings), *rows]:
        print("| " + " | ".join(row) + " |")


def size_rows(rooms: dict[str, list[Source]]) -> list[list[str]]:
    """For each room, and for the sum of those that are not APART: files, code, longest file, comments."""
    groups = {f"`{name}`": sources for name, sources in rooms.items()}
    engine = [source for name, sources in rooms.items() if name not in APART for source in sources]
    groups["all but " + ", ".join(f"`{name}`" for name in APART)] = engine
    rows = []
    for name, all_sources in groups.items():
        sources = by_hand(all_sources)
        if sources:
            n_code = sum(source.n_code() for source in sources)
            longest = max(source.n_lines() for source in sources)
            numbers = map(str, (len(sources), n_code, longest))
            rows.append([name, *numbers, share_of_comments(sources)])
    return rows


def print_long(sources: list[Source]) -> None:
    for source in sources:
        if source.n_lines() > MAX_FILE:
            print(f"{source.path}: {source.n_lines()} lines")
        for length, line, head in source.functions():
            if length > MAX_FUNCTION:
                print(f"{source.path}:{line}: {length} lines: {head[-60:]}")
    for passage in repeated_passages(by_hand(sources)):
        print(passage)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--long", action="store_true")
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.folders:
        groups = {str(arguments.folders[0]): arguments.folders}
    else:
        groups = {
            "`include/`, `src/`": [ROOT / "include", ROOT / "src"],
            "`tests/`": [ROOT / "tests"],
            "`bench/`, `fuzz/`, `examples/`": [ROOT / "bench", ROOT / "fuzz", ROOT / "examples"],
        }
    measured = {name: sources_below(folders) for name, folders in groups.items()}
    if arguments.folders:
        for sources in measured.values():
            sources[:] = [s for s in sources if not re.search("_test|_bench", s.path.name)]
    if arguments.long:
        for sources in measured.values():
            print_long(sources)
        return 0
    print_table(HEADINGS, [[name, *Measures(sources).row()] for name, sources in measured.items()])
    if not arguments.folders:
        rooms = {"include": sources_below([ROOT / "include"])}
        for folder in sorted((ROOT / "src").iterdir()):
            rooms[folder.name] = sources_below([folder])
        print()
        print_table(["room", "files", "lines of code", "longest file", "comment"], size_rows(rooms))
        n_upwards = sum("lies below it" in problem for problem in check_layers.check(ROOT))
        n_headers = len(list((ROOT / "include/limpid").glob("*.h*")))
        tables = [
            source for sources in measured.values() for source in sources if source.is_generated()
        ]
        print(
            f"\nIncludes that point upwards: {n_upwards}. Public headers: {n_headers}. Generated tables: "
            + ", ".join(
                f"`{source.path.relative_to(ROOT)}` ({source.n_lines()})" for source in tables
            )
            + "."
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
