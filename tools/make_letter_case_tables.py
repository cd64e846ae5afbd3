#!/usr/bin/env python3
"""Writes src/jinja/letter_case_tables.cpp from this Python's own Unicode data.

A letter gets a row when one of its mappings is longer than one code point, or when it differs from what
utf8proc (the library that answers for all others) says. Made with Python 3.11 (Unicode 14) and libutf8proc 2.8.
"""

import ctypes
import ctypes.util
import sys
from pathlib import Path


def escaped(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def main() -> None:
    library = ctypes.CDLL(ctypes.util.find_library("utf8proc") or "libutf8proc.so.2")
    rows = []
    for code_point in range(0x80, 0x110000):
        # Surrogates are not letters, and capital sigma needs its neighbours.
        if 0xD800 <= code_point < 0xE000 or code_point == 0x3A3:
            continue
        letter = chr(code_point)
        ours = (letter.lower(), letter.upper(), letter.title())
        theirs = tuple(
            chr(getattr(library, f"utf8proc_to{kind}")(code_point))
            for kind in ("lower", "upper", "title")
        )
        if ours != theirs:
            rows.append(
                f"    {{0x{code_point:04X}, "
                + ", ".join(f'"{escaped(text)}"' for text in ours)
                + "},"
            )
    body = "\n".join(rows)
    text = (
        "// Made by tools/make_letter_case_tables.py; do not edit.\n"
        '#include "jinja/letter_case_tables.h"\n\n'
        "namespace limpid::jinja {\n\n"
        "// clang-format off\n"
        f"const LetterCase kLetterCases[] = {{\n{body}\n}};\n"
        "// clang-format on\n"
        "const size_t kLetterCaseCount = sizeof(kLetterCases) / sizeof(kLetterCases[0]);\n\n"
        "}  // namespace limpid::jinja\n"
    )
    path = Path(__file__).parent.parent / "src/jinja/letter_case_tables.cpp"
    path.write_text(text)
    sys.stdout.write(f"{path}: {len(rows)} rows\n")


if __name__ == "__main__":
    main()
