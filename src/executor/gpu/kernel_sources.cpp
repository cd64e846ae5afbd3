#include "executor/gpu/kernel_sources.h"

#include <fmt/format.h>

#include <initializer_list>
#include <utility>

#include "executor/gpu/packed_matrix.h"
#include "tensor/code_form.h"

namespace limpid::gpu {

// Made by the build from kernels/NAME.
std::string_view attention_text(), attention_work_text(), dialect_text(), embed_text(),
    formulas_text(), fragments_text(), kv_cache_text(), layer_norm_text(), linear_many_text(),
    linear_one_text(), linear_text(), octets_text(), pack_text(), pointwise_text(), rms_norm_text(),
    rope_text(), sums_text(), tensor_attention_loads_text(), tensor_attention_text(),
    tensor_many_text(), tensor_text(), top_k_text();

namespace {

ProgramSource assemble(std::string name, std::string definitions,
                       std::initializer_list<std::string_view> texts) {
  ProgramSource source{std::move(name), std::move(definitions)};
  source.text += dialect_text();
  source.text += sums_text();
  source.text += formulas_text();
  for (const std::string_view text : texts) source.text += text;
  return source;
}

// What octets.cl.h and pack.cl.h want to know of a type of weights.
std::string weight_definitions(DType dtype) {
  const DTypeInfo& type = dtype_info(dtype);
  const Planes planes = planes_of(dtype);
  const CodeForm form = is_quantized(dtype) ? code_form(dtype) : CodeForm{};
  std::string definitions = fmt::format("#define WEIGHT_{} 1\n", type.name);
  const std::pair<std::string_view, int64_t> numbers[] = {
      {"BLOCK_BYTES", type.block_bytes},
      {"OCTETS_OF_BLOCK", type.block_size / kOctet},
      {"Q_BYTES", planes.q_bytes},
      {"HIGH_BYTES", planes.high_bytes},
      {"SCALE_BYTES", planes.scale_bytes},
      {"SCALE_OCTETS", planes.scale_octets},
      {"D_BYTES", planes.d_bytes},
      {"D_OCTETS", planes.d_octets},
      {"LOW_BITS", form.low_bits},
      {"HIGH_BITS", form.high_bits},
      {"ZERO", form.zero},
      {"HAS_MINIMUM", form.has_minimum ? 1 : 0}};
  for (const auto& [name, number] : numbers)
    definitions += fmt::format("#define {} {}\n", name, number);
  return definitions;
}

}  // namespace

ProgramSource op_program() {
  return assemble(
      "ops", "", {pointwise_text(), rms_norm_text(), layer_norm_text(), rope_text(), top_k_text()});
}

ProgramSource matrix_program(DType dtype) {
  const std::string_view pack = is_quantized(dtype) ? pack_text() : "";
  return assemble(
      fmt::format("matrix_{}", dtype_info(dtype).name), weight_definitions(dtype),
      {octets_text(), pack, embed_text(), linear_text(), linear_one_text(), linear_many_text()});
}

ProgramSource tensor_program(DType dtype) {
  return assemble(fmt::format("tensor_{}", dtype_info(dtype).name), weight_definitions(dtype),
                  {octets_text(), fragments_text(), tensor_text(), tensor_many_text()});
}

bool has_matrix_program(DType dtype) { return is_quantized(dtype) || is_plain_float(dtype); }

ProgramSource attention_program(DType k_dtype, DType v_dtype, int rows) {
  const std::string_view k = dtype_info(k_dtype).name;
  const std::string_view v = dtype_info(v_dtype).name;
  return assemble(fmt::format("attention_{}_{}_{}", k, v, rows),
                  fmt::format("#define K_{} 1\n#define V_{} 1\n#define ROWS {}\n", k, v, rows),
                  {kv_cache_text(), attention_work_text(), attention_text()});
}

bool has_tensor_attention(int64_t head_dim) { return head_dim % 16 == 0 && head_dim <= 128; }

ProgramSource tensor_attention_program(DType k_dtype, DType v_dtype, int64_t head_dim) {
  const std::string_view k = dtype_info(k_dtype).name;
  const std::string_view v = dtype_info(v_dtype).name;
  return assemble(
      fmt::format("tensor_attention_{}_{}_{}", k, v, head_dim),
      fmt::format("#define K_{} 1\n#define V_{} 1\n#define HEAD_DIM {}\n", k, v, head_dim),
      {kv_cache_text(), fragments_text(), attention_work_text(), tensor_attention_loads_text(),
       tensor_attention_text()});
}

std::vector<ProgramSource> all_programs() {
  std::vector<ProgramSource> programs = {op_program()};
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!has_matrix_program(dtype)) continue;
    programs.push_back(matrix_program(dtype));
    programs.push_back(tensor_program(dtype));
  }
  for (const DType k : {DType::kF16, DType::kF32}) {
    for (const DType v : {DType::kF16, DType::kF32}) {
      for (const int rows : kAttendRows) programs.push_back(attention_program(k, v, rows));
      for (const int head_dim : {64, 128})  // of most models; others differ in a number
        programs.push_back(tensor_attention_program(k, v, head_dim));
    }
  }
  return programs;
}

}  // namespace limpid::gpu
