// The tensors of a model that learns: values in f32, each with memory for its gradient.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tensor/tensor.h"

namespace limpid {

struct Parameter {
  std::string name;               // as in the checkpoint: "blk.0.attn_q.weight"
  std::shared_ptr<Tensor> value;  // f32, shared with the checkpoint
  Tensor gradient;                // the same shape; empty when it does not learn
  bool learns = true;
  // The ranges of rows that are each the matrix of a linear layer: all rows of attn_output, three
  // ranges of GPT-2's attn_qkv, none of an embedding, an output head, a norm or a bias.
  struct Rows {
    int64_t begin;
    int64_t n;
    bool operator==(const Rows&) const = default;
  };
  std::vector<Rows> projections = {};

  // Weight decay applies to matrices only, and not to norms and biases (Loshchilov & Hutter 2019;
  // the convention of GPT-2 and its successors).
  bool decays() const { return value->shape().rank() > 1; }
};

// Returns a copy of a checkpoint whose tensors are f32 tensors in memory. The rows of Q and K are
// in half-split order, as in the checkpoints of a run, so that a resumed run adds in the same
// order. Everything else (configuration, tokenizer) is shared. Throws the errors of read_spec,
// ResourceError.
std::shared_ptr<Checkpoint> copy_to_f32(const Checkpoint& checkpoint);

// Returns one parameter for each tensor of such a copy, in the order of their names.
std::vector<Parameter> make_parameters(const Checkpoint& checkpoint);

}  // namespace limpid
