"""tools/check_layers.py finds what it is there to find, in trees made for it."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layers

DECODER = "void decode(Executor& executor) { executor.attention(q, k, v); }\n"


class CheckLayers(unittest.TestCase):
    def problems_of(self, files: dict[str, str]) -> list[str]:
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_layers.check(root)

    def test_a_room_includes_rooms_above_it(self):
        files = {
            "src/base/buffer.h": "#pragma once\n",
            "src/tensor/tensor.h": '#include "base/buffer.h"\n',
            "src/model/decoder.h": '#include "base/buffer.h"\n#include "tensor/tensor.h"\n',
        }
        self.assertEqual(self.problems_of(files), [])

    def test_a_room_below_is_refused(self):
        files = {"src/base/buffer.h": '#include "tensor/tensor.h"\n', "src/tensor/tensor.h": "\n"}
        self.assertEqual(
            self.problems_of(files),
            ["src/base/buffer.h: base includes tensor/tensor.h, which lies below it"],
        )

    def test_neighbours_are_refused(self):
        files = {"src/checkpoint/a.cpp": '#include "tokenizer/b.h"\n', "src/tokenizer/b.h": "\n"}
        self.assertEqual(len(self.problems_of(files)), 1)

    def test_an_include_by_relative_path_is_refused(self):
        files = {"src/base/a.cpp": '#include "a.h"\n', "src/base/a.h": "\n"}
        self.assertEqual(len(self.problems_of(files)), 1)

    def test_a_public_header_includes_public_headers_only(self):
        files = {"include/limpid/a.hpp": '#include "base/b.h"\n', "src/base/b.h": "\n"}
        self.assertEqual(len(self.problems_of(files)), 1)

    def test_an_example_sees_the_public_headers_only(self):
        files = {"examples/01_chat.cpp": '#include "base/b.h"\n', "src/base/b.h": "\n"}
        self.assertEqual(len(self.problems_of(files)), 1)

    def test_a_folder_without_a_place_in_the_order_is_refused(self):
        self.assertEqual(len(self.problems_of({"src/utils/a.h": "\n"})), 1)

    def test_a_flag_in_a_message_of_the_library_is_found(self):
        for flag in ("--config FILE", "a smaller context (-c)"):
            text = f'fail("give {flag}");\n'
            self.assertEqual(self.problems_of({"src/cli/main.cpp": text}), [])
            self.assertEqual(len(self.problems_of({"src/model/a.cpp": text})), 1)
        harmless = '// as --config does\nfail("-infinity is not a number");\n'
        self.assertEqual(self.problems_of({"src/model/a.cpp": harmless}), [])

    def test_a_second_forward_pass_is_found(self):
        one = {"src/model/decoder.cpp": DECODER}
        self.assertEqual(self.problems_of(one), [])
        self.assertEqual(len(self.problems_of(one | {"src/model/other.cpp": DECODER})), 2)

    def test_an_executor_that_wraps_another_is_no_forward_pass(self):
        tape = "Activation Tape::attention(int q) override { return inner_->attention(q); }\n"
        self.assertEqual(
            self.problems_of({"src/model/a.cpp": DECODER, "src/train/tape.cpp": tape}), []
        )

    def test_a_comment_is_no_forward_pass(self):
        comment = "// calls executor.attention(q) once a layer\n"
        self.assertEqual(
            self.problems_of({"src/model/a.cpp": DECODER, "src/model/b.h": comment}), []
        )

    def test_long_files_are_found_and_tables_are_not(self):
        long = "\n" * 401
        files = {"src/base/a.cpp": long, "src/base/unicode_tables.cpp": long, "tests/a.cpp": long}
        self.assertEqual(self.problems_of(files), ["src/base/a.cpp: 401 lines, at most 400"])

    def test_public_headers_are_counted(self):
        files = {f"include/limpid/h{i}.hpp": "\n" for i in range(16)}
        self.assertEqual(len(self.problems_of(files)), 1)


if __name__ == "__main__":
    unittest.main()
