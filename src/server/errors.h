// What goes wrong with a request, and how each API says so.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "base/json_text.h"
#include "limpid/error.hpp"
#include "server/http.h"

namespace limpid {

using Json = nlohmann::ordered_json;

// Whose shapes an endpoint speaks.
//   kOpenAi     {"error": {"message", "type", "param", "code"}}, also llama-server's
//   kAnthropic  {"type": "error", "error": {"type", "message"}}
//   kOllama     {"error": "message"}
enum class ApiStyle : uint8_t { kOpenAi, kAnthropic, kOllama };

// Of paths that no endpoint has, too: a client can read an error of its own API only.
ApiStyle style_of(std::string_view path);

// A request that is refused, or that failed, and what the client learns about it.
class ApiError : public Error {
 public:
  // `param` is the field that caused the error: "messages[0].role"; "" for none. Without a `type`
  // the error has the type that OpenAI gives to errors of this status.
  ApiError(int status, const std::string& message, std::string param = "", std::string type = "");

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& type() const { return type_; }
  // More members of the error's object, in OpenAI's shape.
  Json more;
  // More headers of the answer.
  HttpHeaders headers;
  // What the client does not learn, for the server's log.
  std::string reason;

 private:
  int status_;
  std::string param_, type_;
};

// `error` as a client sees it. Errors of the library that are about the request keep their
// messages; of other errors the client learns only the kind, and the message is the reason. The
// error about a prompt that does not fit names `prompt_field`.
ApiError as_api_error(const std::exception_ptr& error, const std::string& prompt_field = "");

// The error in the shape of an API, without the status.
Json error_json(ApiStyle style, const ApiError& error);
HttpAnswer error_answer(ApiStyle style, const ApiError& error);
// Answers with the error, and logs its reason.
void send_error(HttpReply& reply, ApiStyle style, const ApiError& error);
// An error that is found before any endpoint is called.
HttpAnswer refusal(std::string_view path, int status, std::string_view message);

}  // namespace limpid
