// Limpid's public interface: start here.
//
//   #include <iostream>
//   #include <limpid/limpid.hpp>
//
//   int main() {
//     limpid::Chat chat(limpid::LanguageModel::open("SmolLM2-135M-Instruct.Q4_1.gguf"));
//     for (std::string_view piece : chat.ask("What is the capital of France?")) std::cout << piece;
//   }
//
// The headers, in the order in which an application meets them:
//   error.hpp        what the library throws
//   model.hpp        LanguageModel: open a checkpoint, text <-> token ids
//   memory_plan.hpp  how much memory a model needs, known before it is loaded
//   chat.hpp         Chat: a conversation
//   session.hpp      Session: one sequence of tokens, its logits, its continuation
//   generation.hpp   options and results of a continuation
//   text_stream.hpp  TextStream: the text as it arrives, a range of pieces
//   sampler.hpp      the sampler chain's options; how to write a sampler of your own
//   batch.hpp        several prompts in one pass over the weights
//   cancel.hpp       stop from another thread
//
// Threads may share a model: its steps run one at a time. A Session, a Chat and a TextStream belong
// to one thread at a time; only a CancelToken may be used from another. A callback (on_text of a
// batch, look of Session::append, a sampler) runs in the middle of a step, so it must not evaluate
// with the same model, which throws ArgumentError, nor wait for a thread that does. It may destroy
// sessions.
#pragma once

#include "limpid/batch.hpp"
#include "limpid/cancel.hpp"
#include "limpid/chat.hpp"
#include "limpid/error.hpp"
#include "limpid/generation.hpp"
#include "limpid/memory_plan.hpp"
#include "limpid/model.hpp"
#include "limpid/sampler.hpp"
#include "limpid/session.hpp"
#include "limpid/text_stream.hpp"
