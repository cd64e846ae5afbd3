// The figure of docs/microgpt.md is what the code draws, and the code draws what it computed.
#include "train/microgpt/graph_picture.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "data_paths.h"

namespace limpid::microgpt {
namespace {

TEST(GraphPicture, TheDocsHaveTheFigureThatTheCodeDraws) {
  std::ifstream file(testing::source_path("docs/microgpt-graph.svg"));
  ASSERT_TRUE(file.is_open());
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), example_graph_svg())
      << "limpid microgpt --graph docs/microgpt-graph.svg draws it again";
}

TEST(GraphPicture, ShowsDataSlopesAndGradientsOfTheGraph) {
  Graph graph;
  const Value a = graph.leaf(1.5);
  const Value b = graph.leaf(-4.25);
  const Value product = a * b;
  graph.backward(product);
  const std::string svg =
      to_svg(graph, {{a, "a", 90, 40}, {b, "b", 310, 40}, {product, "a * b", 200, 140}}, 400, 200);
  EXPECT_NE(svg.find(">a = 1.5<"), std::string::npos);
  EXPECT_NE(svg.find(">a * b = -6.375<"), std::string::npos);
  EXPECT_NE(svg.find(">grad -4.25<"), std::string::npos);         // of a
  EXPECT_NE(svg.find("fill='#555555'>1.5<"), std::string::npos);  // the line from b
  size_t n_lines = 0;
  for (size_t i = svg.find("<line"); i != std::string::npos; i = svg.find("<line", i + 1))
    ++n_lines;
  EXPECT_EQ(n_lines, 2U);
}

}  // namespace
}  // namespace limpid::microgpt
