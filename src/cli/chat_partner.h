// Who answers in a conversation: a model in this process, or a server that speaks OpenAI's API.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "limpid/chat.hpp"

namespace limpid::cli {

// Called with each piece of an answer, as soon as it is there.
using ShowPiece = std::function<void(std::string_view piece)>;

// Methods with the name of a method of limpid::Chat do the same. ask() and reply() return when the
// answer is complete or the cancel token was set; what was shown is then a message of the
// conversation. They throw as Chat does, and ResourceError when the connection to a server fails.
// After an exception the messages are as they were before, unless the answer had begun: then the
// part that came is kept.
class ChatPartner {
 public:
  virtual ~ChatPartner() = default;

  virtual GenerationResult ask(const std::string& question, const ShowPiece& show) = 0;
  virtual GenerationResult reply(const ShowPiece& show) = 0;
  virtual const std::vector<Message>& messages() const = 0;
  virtual void assign(std::vector<Message> messages) = 0;

  // The sampling of the next answers, as far as it is known here.
  virtual SamplerOptions& sampler() = 0;
  // In words, for a person.
  virtual std::string settings() = 0;
  // Sets one of sampler_settings.h. Throws ArgumentError, and then nothing has changed.
  virtual void set(std::string_view name, std::string_view value) = 0;

  // Why an answer with StopReason::kLength ended, if the reason was not the limit that the user
  // set; otherwise "".
  virtual std::string length_note(const GenerationResult& result) = 0;
};

}  // namespace limpid::cli
