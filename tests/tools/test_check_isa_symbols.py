"""tools/check_isa_symbols.py accepts an instruction set's own symbols and finds the shared ones."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_isa_symbols

OWN = """\
_ZN6limpid8isa_avx23dotEPKfS2_l T 0 10
_ZNK6limpid8isa_avx26Kernel3runEv W 0 10
_ZTVN6limpid8isa_avx26KernelE V 0 10
_ZGVZN6limpid8isa_avx25tableEvE1t u 0 8
_ZZN6limpid8isa_avx25tableEvE1t u 0 8
_ZL5local t 0 10
"""


class CheckIsaSymbols(unittest.TestCase):
    def test_own_and_local_symbols_pass(self):
        self.assertEqual(check_isa_symbols.foreign_symbols(OWN, "avx2"), [])

    def test_the_namespace_of_another_set_is_foreign(self):
        found = check_isa_symbols.foreign_symbols(OWN, "avx512")
        self.assertEqual(len(found), 5)

    def test_a_set_whose_name_begins_alike_is_foreign(self):
        symbols = "_ZN6limpid14isa_avx512vnni3dotEv T 0 1\n"
        self.assertEqual(len(check_isa_symbols.foreign_symbols(symbols, "avx512")), 1)
        self.assertEqual(check_isa_symbols.foreign_symbols(symbols, "avx512vnni"), [])

    def test_templates_of_the_standard_library_are_foreign(self):
        symbols = "_ZSt3maxIfERKT_S2_S2_ W 0 1\n_ZNSt6vectorIfSaIfEED1Ev W 0 1\n_ZN6limpid6shapedEv W 0 1\n"
        self.assertEqual(len(check_isa_symbols.foreign_symbols(symbols, "avx2")), 3)


if __name__ == "__main__":
    unittest.main()
