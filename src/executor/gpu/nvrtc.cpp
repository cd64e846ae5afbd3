#include "executor/gpu/nvrtc.h"

#include <vector>

#include "base/check.h"
#include "executor/gpu/cuda_functions.h"
#include "executor/gpu/dynamic_library.h"

namespace limpid::gpu {

namespace cuda {

const NvrtcFunctions* nvrtc_functions(std::string& problem) {
  // The system's loader often does not look into the toolkit's folder.
  static constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                           "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"};
  static const auto loaded = load_functions<NvrtcFunctions>(
      kNames,
      {"CUDA's run-time compiler",
       "; the CUDA toolkit, or the package nvidia-cuda-nvrtc, brings it",
       "; install CUDA 11.2 or later (12 or later for Hopper GPUs)"},
      [](NvrtcFunctions& functions, const auto& find) {
#define LIMPID_CUDA(member, symbol, type, parameters) find(#symbol, functions.member);
        LIMPID_NVRTC_FUNCTIONS
#undef LIMPID_CUDA
      });
  return loaded.get(problem);
}

}  // namespace cuda

namespace {

// Owns a program of NVRTC.
class Compilation {
 public:
  Compilation(const cuda::NvrtcFunctions& nvrtc, const ProgramSource& source) : nvrtc_(nvrtc) {
    check(nvrtc_.create(&program_, source.text.c_str(), source.name.c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;
  ~Compilation() { nvrtc_.destroy(&program_); }

  void check(cuda::Status status, std::string_view call) const {
    LIMPID_CHECK(ResourceError, status == 0,
                 "[cuda] {} failed: {}; install another version of the CUDA toolkit", call,
                 nvrtc_.error_string(status));
  }
  cuda::NvrtcProgram handle() const { return program_; }
  std::string log() const {
    size_t size = 0;
    if (nvrtc_.log_size(program_, &size) != 0) return "";
    std::string text(size, '\0');
    if (nvrtc_.log(program_, text.data()) != 0) return "";
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

 private:
  const cuda::NvrtcFunctions& nvrtc_;
  cuda::NvrtcProgram program_ = nullptr;
};

}  // namespace

std::string nvrtc_problem() {
  std::string problem;
  cuda::nvrtc_functions(problem);
  return problem;
}

std::string compile_to_cubin(const ProgramSource& source, const std::string& architecture,
                             const std::string& device, std::string* log) {
  std::string problem;
  const cuda::NvrtcFunctions* nvrtc = cuda::nvrtc_functions(problem);
  LIMPID_CHECK(ResourceError, nvrtc != nullptr, "[cuda] {}", problem);
  const Compilation compilation(*nvrtc, source);
  const std::string target = "-arch=" + architecture;
  std::vector<const char*> options(kNvrtcOptions.begin(), kNvrtcOptions.end());
  options.push_back(target.c_str());
  if (log != nullptr) options.insert(options.end(), {"-Xptxas", "-v"});
  const cuda::Status status =
      nvrtc->compile(compilation.handle(), static_cast<int>(options.size()), options.data());
  LIMPID_CHECK(ResourceError, status == 0,
               "[cuda] {}: the kernels of '{}' do not compile for {}: {}; install a CUDA toolkit "
               "that knows the device, or use another device. The compiler's log:\n{}",
               device, source.name, architecture, nvrtc->error_string(status), compilation.log());
  if (log != nullptr) *log = compilation.log();
  size_t size = 0;
  compilation.check(nvrtc->cubin_size(compilation.handle(), &size), "nvrtcGetCUBINSize");
  std::string cubin(size, '\0');
  compilation.check(nvrtc->cubin(compilation.handle(), cubin.data()), "nvrtcGetCUBIN");
  return cubin;
}

}  // namespace limpid::gpu
