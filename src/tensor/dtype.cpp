#include "tensor/dtype.h"

#include <array>

namespace limpid {
namespace {

constexpr std::array<DTypeInfo, 22> kInfo = {{
    {"f32", 1, 4},      {"f16", 1, 2},        {"bf16", 1, 2},     {"f64", 1, 8},
    {"i8", 1, 1},       {"i16", 1, 2},        {"i32", 1, 4},      {"i64", 1, 8},
    {"u8", 1, 1},       {"bool", 1, 1},       {"q4_0", 32, 18},   {"q4_1", 32, 20},
    {"q5_0", 32, 22},   {"q5_1", 32, 24},     {"q8_0", 32, 34},   {"q2_K", 256, 84},
    {"q3_K", 256, 110}, {"q4_K", 256, 144},   {"q5_K", 256, 176}, {"q6_K", 256, 210},
    {"iq4_nl", 32, 18}, {"iq4_xs", 256, 136},
}};
static_assert(kInfo.size() == static_cast<size_t>(DType::kIQ4_XS) + 1);

}  // namespace

const DTypeInfo& dtype_info(DType dtype) { return kInfo[static_cast<size_t>(dtype)]; }

}  // namespace limpid
