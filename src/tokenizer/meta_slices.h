// The slices in which Meta's own tokenizer encodes a text.
#pragma once

#include <functional>
#include <string_view>

namespace limpid {

// Meta's tokenizer.py gives tiktoken at most 400,000 characters at once, and cuts again after every
// 25,000 characters in a row that are white space, or that are none (Python's str.isspace). Each
// slice is encoded by itself, so ids differ from those of an uncut text around the cuts.
// Calls `on_slice` for each, in order; together they are `text`. Linear.
void for_each_meta_slice(std::string_view text,
                         const std::function<void(std::string_view)>& on_slice);

}  // namespace limpid
