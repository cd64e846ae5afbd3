// Whether the branches of a "oneOf" exclude each other.
#pragma once

#include <cstddef>
#include <string_view>

#include "server/json_body.h"

namespace limpid {

// The part of the schema `root` that a reference names: "#/$defs/a%20b" is the member "a b" of
// "$defs". The "$id" of `root` may come before it. Null when it names nothing.
const Json* referred_part(const Json& root, std::string_view reference);

// A grammar can only say "one branch or another", which is "anyOf". "oneOf" says that no other
// branch fits, and so means the same only where no value can fit two of them.
class BranchCheck {
 public:
  // `root` is the whole schema, which references are about.
  explicit BranchCheck(const JsonField& root) : root_(root) {}

  // Throws ApiError unless every two schemas of the list `one_of` differ provably: in their types,
  // in their constants, or in those of a property that both require.
  void require_disjoint(const JsonField& one_of);

 private:
  struct Known;
  struct Branch;

  void count(size_t n);
  const Json* resolved(const Json& schema) const;
  Known known_values(const Json& schema);
  Branch branch_of(const Json& schema);

  const JsonField& root_;
  size_t n_seen_ = 0;  // values, properties and branches
};

}  // namespace limpid
