"""docs/rooms.svg is what tools/draw_rooms.py makes of the includes as they are."""

import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_layers
import draw_rooms
from draw_rooms import ROOT


class DrawRooms(unittest.TestCase):
    def test_the_picture_is_of_this_tree(self):
        wanted = draw_rooms.svg_of(draw_rooms.includes_of(ROOT))
        self.assertEqual((ROOT / draw_rooms.PICTURE).read_text(), wanted, "run tools/draw_rooms.py")

    def test_every_room_has_a_line_about_it(self):
        self.assertEqual(set(draw_rooms.HOLDS), {*check_layers.ABOVE, draw_rooms.PUBLIC})

    def test_arrows_are_read_from_includes(self):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name, text in {
                "src/base/a.h": "#include <vector>\n#include <limpid/error.hpp>\n",
                "src/model/b.cpp": '#include "base/a.h"\n#include "model/b.h"\n',
            }.items():
                (root / name).parent.mkdir(parents=True)
                (root / name).write_text(text)
            self.assertEqual(
                draw_rooms.includes_of(root),
                {"base": {"limpid"}, "limpid": set(), "model": {"base"}},
            )

    def test_an_arrow_that_follows_from_others_is_left_out(self):
        graph = {"cli": {"model", "base"}, "model": {"base"}, "base": set()}
        arrows = draw_rooms.without_implied(graph)
        self.assertEqual(arrows, {"cli": {"model"}, "model": {"base"}, "base": set()})
        self.assertEqual(draw_rooms.levels_of(arrows), {"base": 0, "model": 1, "cli": 2})
        svg = xml.etree.ElementTree.fromstring(draw_rooms.svg_of(graph))
        paths = [path for path in svg.findall(".//{*}path") if "marker-end" in path.attrib]
        self.assertEqual(len(paths), 2)


if __name__ == "__main__":
    unittest.main()
