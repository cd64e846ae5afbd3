#include "checkpoint/torch_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/printable.h"
#include "limpid/error.hpp"

namespace limpid {
namespace {

// Where the elements of a tensor are: element [i, j] is at i * strides[0] + j * strides[1].
struct Layout {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // in elements
  int64_t n_elements = 1;
};

// Checks one tensor against its storage. A dense tensor (strides [n_cols, 1] for a matrix) becomes
// a view of the mapped record; any other is gathered into a copy when it is read. For example,
// weight.t(), the transpose of a [2, 3] matrix, has sizes [3, 2] and strides [1, 3].
class TensorReader {
 public:
  TensorReader(const TorchArchive& archive, uint32_t index, const std::string& name)
      : archive_(archive), tensor_(archive.pickle.at(index)), name_(name) {}

  void add_to(Checkpoint& checkpoint) const {
    const PickleValue& storage = item(0);
    const std::span<const std::byte> bytes = storage_bytes(storage);
    const Layout layout = read_layout();
    const int64_t offset = item(1).integer;
    check_bounds(layout, offset, storage.integer);
    const uint64_t element_bytes = dtype_info(storage.dtype).block_bytes;
    const std::byte* first = bytes.data() + static_cast<uint64_t>(offset) * element_bytes;
    const Shape shape{std::span<const int64_t>(layout.sizes)};
    if (is_dense(layout)) return checkpoint.add_view(name_, {storage.dtype, shape, first});
    checkpoint.add_derived(name_, storage.dtype, shape,
                           {"rows put in order", [dtype = storage.dtype, shape, first, layout] {
                              return gather(dtype, shape, first, layout);
                            }});
  }

 private:
  const PickleValue& item(size_t i) const { return archive_.pickle.at(tensor_.items[i]); }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> problem, Args&&... args) const {
    throw FormatError(archive_.path, tensor_.offset, printable(name_),
                      fmt::format(problem, std::forward<Args>(args)...));
  }

  // The bytes of a storage. Their number must be what the pickle says.
  std::span<const std::byte> storage_bytes(const PickleValue& storage) const {
    const std::string record_name = fmt::format("{}data/{}", archive_.root, storage.text);
    const ZipRecord* record = archive_.zip.find(record_name);
    if (record == nullptr) fail("its record {} is missing", printable(record_name));
    const auto expected = checked_mul<uint64_t>(static_cast<uint64_t>(storage.integer),
                                                dtype_info(storage.dtype).block_bytes);
    if (expected != record->bytes.size()) {
      fail("a storage of {} {} elements, but the record {} has {} bytes", storage.integer,
           dtype_info(storage.dtype).name, printable(record_name), record->bytes.size());
    }
    return record->bytes;
  }

  Layout read_layout() const {
    Layout layout;
    for (const uint32_t index : item(2).items) {
      const int64_t size = archive_.pickle.at(index).integer;
      if (size < 0) fail("has a size of {}", size);
      layout.sizes.push_back(size);
      // The product of all sizes so far, as Shape computes it. A later size of 0 does not excuse an
      // overflow.
      const auto product = checked_mul(layout.n_elements, size);
      if (!product) fail("has too many elements");
      layout.n_elements = *product;
    }
    for (const uint32_t index : item(3).items) {
      const int64_t stride = archive_.pickle.at(index).integer;
      if (stride < 0) fail("has a stride of {}", stride);
      layout.strides.push_back(stride);
    }
    return layout;
  }

  // The last element must be in the storage, and the tensor must not have more elements than the
  // storage: a stride of 0 repeats elements, and a file of a few bytes could ask for any amount of
  // memory.
  void check_bounds(const Layout& layout, int64_t offset, int64_t n_stored) const {
    std::optional<int64_t> end = offset < 0 ? std::nullopt : std::optional(offset);
    for (size_t i = 0; end && i < layout.sizes.size() && layout.n_elements > 0; ++i) {
      const auto reach = checked_mul(layout.sizes[i] - 1, layout.strides[i]);
      end = reach ? checked_add(*end, *reach) : std::nullopt;
    }
    if (end && layout.n_elements > 0) end = checked_add<int64_t>(*end, 1);
    if (!end || *end > n_stored) {
      fail("reaches beyond its storage of {} elements: offset {}, sizes [{}], strides [{}]",
           n_stored, offset, fmt::join(layout.sizes, ", "), fmt::join(layout.strides, ", "));
    }
    if (layout.n_elements > n_stored) {
      fail("has {} elements in a storage of {}; expanded tensors are not read", layout.n_elements,
           n_stored);
    }
  }

  // Whether the elements are in row-major order without gaps: the last stride is 1, and each other
  // stride is the product of the sizes after it. A dimension of size 1 may have any stride, because
  // it is never used. The product cannot overflow: it is at most n_elements, which check_bounds has
  // bounded.
  static bool is_dense(const Layout& layout) {
    if (layout.n_elements == 0) return true;
    int64_t expected = 1;
    for (size_t i = layout.sizes.size(); i-- > 0;) {
      if (layout.sizes[i] != 1 && layout.strides[i] != expected) return false;
      expected *= layout.sizes[i];
    }
    return true;
  }

  // Copies the elements in row-major order. `at` counts like an odometer: when a dimension reaches
  // its end it goes back to 0, and the dimension before it advances by one.
  static Tensor gather(DType dtype, const Shape& shape, const std::byte* first,
                       const Layout& layout) {
    Tensor result(dtype, shape);
    const uint32_t element_bytes = dtype_info(dtype).block_bytes;
    std::vector<int64_t> at(layout.sizes.size(), 0);
    int64_t from = 0;  // in elements
    for (int64_t i = 0; i < layout.n_elements; ++i) {
      std::memcpy(result.data() + i * element_bytes, first + from * element_bytes, element_bytes);
      for (size_t d = at.size(); d-- > 0;) {
        from += layout.strides[d];
        if (++at[d] < layout.sizes[d]) break;
        from -= layout.strides[d] * at[d];
        at[d] = 0;
      }
    }
    return result;
  }

  const TorchArchive& archive_;
  const PickleValue& tensor_;
  const std::string& name_;
};

}  // namespace

void add_torch_tensor(const TorchArchive& archive, uint32_t index, const std::string& name,
                      Checkpoint& checkpoint) {
  TensorReader(archive, index, name).add_to(checkpoint);
}

}  // namespace limpid
