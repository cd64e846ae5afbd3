#include "server/errors.h"

#include <fmt/format.h>

#include <new>

#include "base/error_text.h"
#include "server/generation_service.h"
#include "tokenizer/chat_template.h"

namespace limpid {
namespace {

// Clients decide by the status and the type whether to try again. OpenAI's client repeats a request
// after 429 or 5xx, and does not after 400 or 404. So a status tells whose fault it is: while the
// model is being loaded, a request gets 503. Each API has names of its own for a status.
struct StatusType {
  int status;
  const char* open_ai;
  const char* anthropic;
};

constexpr StatusType kTypes[] = {
    {400, "invalid_request_error", "invalid_request_error"},
    {401, "authentication_error", "authentication_error"},
    {403, "permission_error", "permission_error"},
    {404, "not_found_error", "not_found_error"},
    {413, "invalid_request_error", "request_too_large"},
    {429, "rate_limit_error", "rate_limit_error"},
    {500, "server_error", "api_error"},
    {501, "not_supported_error", "invalid_request_error"},
    {503, "unavailable_error", "overloaded_error"},
};

const StatusType& type_of(int status) {
  for (const StatusType& type : kTypes) {
    if (type.status == status) return type;
  }
  return status < 500 ? kTypes[0] : type_of(500);
}

// The text "context_length_exceeded" is what clients of OpenAI look for.
ApiError overflow(const ContextOverflowError& error, const std::string& prompt_field) {
  ApiError told(400,
                fmt::format("the request exceeds the available context size: it has {} tokens, and "
                            "there is room for {} (context_length_exceeded)",
                            error.n_tokens(), error.n_ctx()),
                prompt_field, "exceed_context_size_error");
  told.more = {{"n_prompt_tokens", error.n_tokens()}, {"n_ctx", error.n_ctx()}};
  return told;
}

// What the client learns is only the kind.
ApiError without_reason(int status, const char* message, const std::exception& error) {
  ApiError told(status, message);
  told.reason = error.what();
  return told;
}

}  // namespace

ApiStyle style_of(std::string_view path) {
  if (path.starts_with("/api/")) return ApiStyle::kOllama;
  return path.starts_with("/v1/messages") ? ApiStyle::kAnthropic : ApiStyle::kOpenAi;
}

ApiError::ApiError(int status, const std::string& message, std::string param, std::string type)
    : Error(message),
      more(Json::object()),
      status_(status),
      param_(std::move(param)),
      type_(type.empty() ? type_of(status).open_ai : std::move(type)) {}

// One place translates the exceptions of the library. An error that the client can mend keeps its
// message. The messages of ResourceError and of unknown errors may name files of the server, so the
// client gets only their kind.
ApiError as_api_error(const std::exception_ptr& error, const std::string& prompt_field) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& known) {
    return known;
  } catch (const ContextOverflowError& known) {
    return overflow(known, prompt_field);
  } catch (const QueueFullError&) {
    return {429, "too many requests wait already: try again later"};
  } catch (const TemplateRefusal& known) {
    return {400, without_part(known), "messages"};
  } catch (const ArgumentError& known) {
    return {400, without_part(known)};
  } catch (const UnsupportedError& known) {
    return {501, without_part(known)};
  } catch (const ResourceError& hidden) {
    return without_reason(503, "the server lacks memory or another resource for this request",
                          hidden);
  } catch (const std::bad_alloc& hidden) {
    return without_reason(503, "the server lacks memory for this request", hidden);
  } catch (const std::exception& hidden) {
    return without_reason(500, "the server failed", hidden);
  } catch (...) {
    return {500, "the server failed"};
  }
}

Json error_json(ApiStyle style, const ApiError& error) {
  if (style == ApiStyle::kOllama) return {{"error", error.what()}};
  if (style == ApiStyle::kAnthropic) {
    return {
        {"type", "error"},
        {"error", {{"type", type_of(error.status()).anthropic}, {"message", error.what()}}},
    };
  }
  Json inner = {
      {"message", error.what()},
      {"type", error.type()},
      {"param", error.param().empty() ? Json() : Json(error.param())},
      {"code", error.status()},
  };
  inner.update(error.more);
  return {{"error", std::move(inner)}};
}

HttpAnswer error_answer(ApiStyle style, const ApiError& error) {
  HttpAnswer answer{error.status(), "application/json", dump_json(error_json(style, error)),
                    error.headers};
  if (error.status() == 429 || error.status() == 503)
    answer.headers.emplace_back("Retry-After", "1");
  if (error.status() == 401) answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

void send_error(HttpReply& reply, ApiStyle style, const ApiError& error) {
  reply.log_failure(error.reason);
  reply.send(error_answer(style, error));
}

HttpAnswer refusal(std::string_view path, int status, std::string_view message) {
  return error_answer(style_of(path), ApiError(status, std::string(message)));
}

}  // namespace limpid
