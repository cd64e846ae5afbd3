// Limpid's public interface: start here.
//
//   #include <iostream>
//   #include <limpid/limpid.hpp>
//
//   int main() {
//     limpid::ChatOptions options;
//     options.generation.sampler.temperature = 0;  // always the likeliest token
//     limpid::Chat chat(limpid::LanguageModel::open("SmolLM2-135M-Instruct.Q4_1.gguf"), options);
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
// to one thread at a time; only a CancelToken may be used from another. A callback in the middle of
// a step (on_text and the samplers of a batch, look of Session::append) must not evaluate with the
// same model or change its sessions (that throws ArgumentError), and must not wait for a thread
// that does. A callback may destroy sessions. The thread that runs a step runs the callbacks of all
// whose tokens the step evaluates, so a callback may run on another thread than the one that gave
// it.
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
