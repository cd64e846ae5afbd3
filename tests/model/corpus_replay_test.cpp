// Replays the checked-in corpus of the fuzz targets that open a whole model; a finding becomes a
// file there, `crash-…`; `refused-…` are inputs that no tiny model fits.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "data_paths.h"
#include "model/untrusted_model.h"

namespace limpid {
namespace {

struct Target {
  const char* name;
  Verdict (*check)(std::string_view input);
};

class ModelCorpus : public ::testing::TestWithParam<Target> {};

TEST_P(ModelCorpus, OpensOrIsRefused) {
  int n_files = 0;
  const std::string folder = testing::source_path(std::string("fuzz/corpus/") + GetParam().name);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    const std::string name = entry.path().filename().string();
    const bool is_refused = name.starts_with("crash-") || name.starts_with("refused-");
    EXPECT_EQ(GetParam().check(input), is_refused ? Verdict::kRefused : Verdict::kAccepted) << name;
    ++n_files;
  }
  EXPECT_GT(n_files, 0);
}

INSTANTIATE_TEST_SUITE_P(All, ModelCorpus,
                         ::testing::Values(Target{"configuration", check_configuration},
                                           Target{"gguf_model", check_gguf_model},
                                           Target{"gguf_split", check_gguf_split},
                                           Target{"importance", check_importance},
                                           Target{"safetensors_index", check_safetensors_index},
                                           Target{"state_dict", check_state_dict}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace limpid
