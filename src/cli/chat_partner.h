// Who answers in a conversation: a model in this process, or a server that speaks OpenAI's API.
#pragma once

#include <functional>
#include <memory>
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

struct RemoteServer {
  std::string url;  // its root, without "/v1" and without a '/' at the end
  std::string key;  // "" for none
};

// "localhost:8080", "http://localhost:8080/" and "http://localhost:8080/v1" are one server. Throws
// ArgumentError for an address that is not http or https.
std::string server_root(std::string_view address);

// The models that the server offers, by /v1/models. Throws ResourceError when it cannot be reached,
// wants another key, or has no such API.
std::vector<std::string> models_of(const RemoteServer& server);

struct RemoteOptions {
  RemoteServer server;
  std::string model;  // the server's name for it
  std::string system;
  GenerationOptions generation;
  // The sampling settings that the user chose. Only these are sent; the server uses its own values
  // for the others.
  std::vector<std::string> given_settings;
};

// The conversation is kept here, and each request sends all of it.
std::unique_ptr<ChatPartner> make_remote_partner(RemoteOptions options);

}  // namespace limpid::cli
