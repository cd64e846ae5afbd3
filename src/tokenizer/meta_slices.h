// Cuts a text into the slices that Meta's own tokenizer encodes separately.
#pragma once

#include <functional>
#include <string_view>

namespace limpid {

// Meta's tokenizer.py passes at most 400,000 characters at once to tiktoken, and also cuts after
// 25,000 consecutive characters that are all white space or all not (Python's str.isspace). Each
// slice is encoded separately, so the ids around a cut differ from those of the whole text. Calls
// `on_slice` for each slice in order; joined, the slices are `text`. Takes linear time.
void for_each_meta_slice(std::string_view text,
                         const std::function<void(std::string_view)>& on_slice);

}  // namespace limpid
