// Products by several threads, which divide them in ways that depend on the shape: the same bits
// for every number of threads and instruction set, and within rounding of a sum in f64.
#include "executor/cpu/matrix_product.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "executor/cpu/isa.h"
#include "executor/executors.h"
#include "executor/op_cases.h"

namespace limpid {
namespace {

struct Sizes {
  int64_t rows;
  int64_t depth;
  std::vector<int64_t> cols;  // of each product
};

std::string name_of(const Sizes& sizes, bool left_transposed, bool right_transposed) {
  std::string name = std::to_string(sizes.rows) + " x " + std::to_string(sizes.depth) + " x";
  for (const int64_t n : sizes.cols) name += " " + std::to_string(n);
  return name + (left_transposed ? ", left transposed" : "") +
         (right_transposed ? ", right transposed" : "");
}

// All products of one call, one after another; odd ones are added to ones, the others have a bias.
std::vector<float> products(const Sizes& sizes, bool left_transposed, bool right_transposed,
                            std::string_view isa, int n_threads) {
  const std::vector<float> x = random_values(sizes.rows * sizes.depth, 1);
  const std::vector<float> right = random_values(sizes.depth * 100, 2);
  const std::vector<float> bias = random_values(100, 3);
  ThreadPool pool(n_threads);
  std::vector<float> scratch(static_cast<size_t>(multiply_scratch_floats(n_threads)));
  int64_t n_results = 0;
  for (const int64_t n : sizes.cols) n_results += sizes.rows * n;
  std::vector<float> y(static_cast<size_t>(n_results), 1.0F);
  std::vector<MatrixProduct> all;
  float* free = y.data();
  for (const int64_t n : sizes.cols) {
    MatrixProduct product;
    product.right = right.data();
    product.right_stride = right_transposed ? sizes.depth : n;
    product.cols = n;
    product.y = free;
    product.add = all.size() % 2 == 1;
    product.right_transposed = right_transposed;
    product.bias = product.add ? nullptr : bias.data();
    all.push_back(product);
    free += sizes.rows * n;
  }
  const LeftMatrix left{x.data(), left_transposed ? sizes.rows : sizes.depth, sizes.rows,
                        sizes.depth, left_transposed};
  multiply(*choose_isa(isa).kernels, pool, left, all, scratch.data());
  return y;
}

std::vector<double> products_in_f64(const Sizes& sizes, bool left_transposed,
                                    bool right_transposed) {
  const std::vector<float> x = random_values(sizes.rows * sizes.depth, 1);
  const std::vector<float> right = random_values(sizes.depth * 100, 2);
  const std::vector<float> bias = random_values(100, 3);
  std::vector<double> y;
  for (size_t p = 0; p < sizes.cols.size(); ++p) {
    const int64_t n = sizes.cols[p];
    for (int64_t m = 0; m < sizes.rows; ++m) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = p % 2 == 1 ? 1.0 : bias[static_cast<size_t>(j)];
        for (int64_t k = 0; k < sizes.depth; ++k) {
          const int64_t from = left_transposed ? k * sizes.rows + m : m * sizes.depth + k;
          const int64_t at = right_transposed ? j * sizes.depth + k : k * n + j;
          sum += static_cast<double>(x[static_cast<size_t>(from)]) * right[static_cast<size_t>(at)];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(MatrixProduct, HasTheSameBitsHoweverItIsDivided) {
  for (const Sizes& sizes : {
           Sizes{0, 30, {33}},            // nothing
           Sizes{1, 1, {1}},              // less than a tile
           Sizes{50, 600, {33, 65}},      // few rows: a part by all threads
           Sizes{400, 300, {70}},         // rows for two threads
           Sizes{700, 20, {8, 32, 100}},  // and for three
           Sizes{8, 40000, {20}},         // several parts down the depth
           Sizes{2200, 9, {40}},          // and along the rows
       }) {
    for (const bool left_transposed : {false, true}) {
      for (const bool right_transposed : {false, true}) {
        const std::string name = name_of(sizes, left_transposed, right_transposed);
        const std::vector<float> y = products(sizes, left_transposed, right_transposed, "", 1);
        const std::vector<double> exact = products_in_f64(sizes, left_transposed, right_transposed);
        const double tolerance = 1e-6 * static_cast<double>(sizes.depth) + 1e-6;
        for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], exact[i], tolerance) << name;
        for (const std::string_view isa : available_isas()) {
          for (const int n_threads : {1, 2, 3, 5})
            EXPECT_EQ(products(sizes, left_transposed, right_transposed, isa, n_threads), y)
                << name << ", " << isa << ", " << n_threads << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace limpid
