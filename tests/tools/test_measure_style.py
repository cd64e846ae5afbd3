"""tools/measure_style.py counts what its table says that it counts."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import measure_style


def source(text: str, name: str = "a.cpp") -> measure_style.Source:
    return measure_style.Source(pathlib.Path(name), text)


class Functions(unittest.TestCase):
    def lengths(self, text: str) -> list[int]:
        return [n_lines for n_lines, _, _ in source(text).functions()]

    def test_a_function_is_measured_from_its_signature_to_its_brace(self):
        text = "namespace a {\n\n// says\nint f(int x,\n      int y) {\n  return x + y;\n}\n}\n"
        self.assertEqual(source(text).functions(), [(4, 4, "int f(int x, int y)")])

    def test_members_and_qualifiers(self):
        text = "struct A : B {\n  A() : x_{1}, y_(2) {\n  }\n  int f() const noexcept override {\n    return 1;\n  }\n};\n"
        self.assertEqual(self.lengths(text), [2, 3])

    def test_what_is_inside_a_function_belongs_to_it(self):
        text = "int f() {\n  auto g = [](int x) {\n    return x;\n  };\n  if (g(1)) {\n  }\n  return 2;\n}\n"
        self.assertEqual(self.lengths(text), [8])

    def test_types_tables_and_initialisers_are_no_functions(self):
        text = "enum class E { kA };\nconst int kTable[] = {1, 2};\nstruct alignas(64) S {\n  int x{3};\n};\n"
        self.assertEqual(self.lengths(text), [])

    def test_braces_in_text_do_not_count(self):
        text = 'int f() {\n  g("}", \'}\', R"x(})x");  // }\n  /* } */\n#define X {\n  return 1\'000;\n}\n'
        self.assertEqual(self.lengths(text), [6])


class Lines(unittest.TestCase):
    def test_comments_are_counted_among_written_lines(self):
        text = "// one\n\nint x;  // not a line of comment\n/* two\n   three */\nint y;\n"
        self.assertEqual(source(text).comment_lines(), (3, 5))

    def test_a_passage_that_stands_twice_is_one(self):
        passage = "".join(f"  call({i});\n" for i in range(12))
        one, other = source("int f() {\n" + passage + "}\n"), source(passage + "done;\n", "b.cpp")
        self.assertEqual(measure_style.repeated_passages([one, other]), ["a.cpp:2 ~ b.cpp:1"])
        short = source(
            "".join(f"  call({i});\n" for i in range(measure_style.PASSAGE - 1)), "c.cpp"
        )
        self.assertEqual(measure_style.repeated_passages([short, other]), [])

    def test_rooms_are_counted_by_lines_of_code(self):
        rows = measure_style.size_rows(
            {
                "base": [source("// says\nint x;\n\nint y;\n"), source("int z;\n", "a_tables.cpp")],
                "train": [source("int t;\n")],
            }
        )
        self.assertEqual(rows[0], ["`base`", "1", "2", "4", "33 %"])
        self.assertEqual(rows[1][2], "1")
        self.assertEqual(rows[2][1:3], ["1", "2"])

    def test_generated_tables_are_set_apart(self):
        rows = measure_style.Measures(
            [source("int x;\n"), source("x\n" * 900, "b_tables.cpp"), source("int f() {}\n")]
        ).row()
        self.assertEqual(rows[:4], ["2", "1", "1", "1"])


if __name__ == "__main__":
    unittest.main()
