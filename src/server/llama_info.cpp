// llama-server's endpoints that tell about the server, its model, its adapters and its tokenizer.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "base/utf8.h"
#include "server/openai_shapes.h"

namespace limpid {
namespace {

// Its text; or, for a part of a character, its bytes as numbers.
Json piece_json(std::string_view piece) {
  if (unicode::is_valid(piece)) return piece;
  return std::vector<uint8_t>(piece.begin(), piece.end());
}

}  // namespace

// Control tokens are recognised only where the caller asks for it: see docs/server.md.
void tokenize(const ApiCall& call) {
  const JsonBody body(call.request.body);
  body.allow_only({"content", "add_special", "parse_special", "with_pieces", "model"});
  const std::vector<TokenId> ids =
      call.served.model.encode(body.string_or_empty("content"), body.boolean("add_special", false),
                               body.boolean("parse_special", false));
  if (!body.boolean("with_pieces", false)) return call.send({{"tokens", ids}});
  // Written token by token: as one document, the tokens of 16 MB would take 4 GB.
  std::string text = R"({"tokens":[)";
  for (const TokenId id : ids) {
    if (!text.ends_with('[')) text += ',';
    const std::string_view piece = call.served.tokenizer().bytes_of(id, true);
    text += dump_json({{"id", id}, {"piece", piece_json(piece)}});
  }
  call.reply->send({200, "application/json", text.append("]}")});
}

void detokenize(const ApiCall& call) {
  const JsonBody body(call.request.body);
  body.allow_only({"tokens", "model"});
  std::vector<TokenId> ids;
  if (const auto tokens = body.find("tokens")) {
    for (const JsonField& token : tokens->elements())
      ids.push_back(static_cast<TokenId>(token.integer(0, call.served.model.vocab_size() - 1)));
  }
  call.send({{"content", call.served.model.decode(ids, true)}});
}

// Shows also what a template makes of tools, which a chat does not take.
void apply_template(const ApiCall& call) {
  Json json = parse_body(call.request.body);
  const Json tools = json.value("tools", Json());
  json.erase("tools");
  const JsonField body(json, "");
  if (!tools.is_null()) JsonField(tools, "tools").elements();  // throws
  const RequestSettings settings = call.read_settings(body, kChatApi);
  check_continues_last(body);
  call.send({{"prompt", render_messages(call.served, body.required("messages"), settings, tools)}});
}

namespace {

// -infinity is null, as in llama-server.
Json biases_json(const GenerationOptions& options, const Tokenizer* tokenizer) {
  auto biases = Json::array();
  const auto add = [&](TokenId id, float bias) {
    biases.push_back({{"token", id}, {"bias", std::isfinite(bias) ? Json(bias) : Json()}});
  };
  for (const LogitBias& bias : options.sampler.logit_bias) add(bias.id, bias.bias);
  if (options.sampler.ignore_eos && tokenizer != nullptr) {
    for (const TokenId id : tokenizer->spec().stop_ids)
      add(id, -std::numeric_limits<float>::infinity());
  }
  return biases;
}

}  // namespace

// What is not there has the value that means off.
Json generation_settings_json(const GenerationOptions& options, const Tokenizer* tokenizer) {
  const SamplerOptions& sampler = options.sampler;
  return {{"n_predict", options.n_predict},
          {"max_tokens", options.n_predict},
          {"seed", sampler.seed},
          {"temperature", sampler.temperature},
          {"dynatemp_range", 0},
          {"dynatemp_exponent", 1},
          {"top_k", sampler.top_k},
          {"top_p", sampler.top_p},
          {"min_p", sampler.min_p},
          {"typical_p", sampler.typical_p},
          {"top_n_sigma", sampler.top_n_sigma},
          {"xtc_probability", sampler.xtc_probability},
          {"xtc_threshold", sampler.xtc_threshold},
          {"repeat_last_n", sampler.repeat_last_n},
          {"repeat_penalty", sampler.repeat_penalty},
          {"presence_penalty", sampler.presence_penalty},
          {"frequency_penalty", sampler.frequency_penalty},
          {"dry_multiplier", 0},
          {"mirostat", 0},
          {"adaptive_target", -1},
          {"adaptive_decay", 0.9},
          {"min_keep", sampler.min_keep},
          {"ignore_eos", sampler.ignore_eos},
          {"logit_bias", biases_json(options, tokenizer)},
          {"stop", options.stop},
          {"n_keep", options.n_keep},
          {"n_probs", std::max(options.n_logprobs, 0)},
          {"grammar", ""},
          {"samplers", split_list(sampler.order, ';')}};
}

Json model_props(const ServedModel& served) {
  return {
      {"default_generation_settings",
       {{"n_ctx", served.n_ctx()},
        {"params", generation_settings_json(served.defaults, served.tokenizer_or_null())}}},
      {"model_alias", served.name},
      {"model_path", served.engine().checkpoint().path},
      {"modalities", {{"vision", false}, {"audio", false}}},
      {"chat_template", served.chat_template->source()},
  };
}

// If the model was never loaded, the answer waits until it is. Otherwise the answer needs no model,
// so a model that sleeps is not woken.
void props(const ServerCall& call) {
  const ModelShelf::Entry entry = call.api.shelf().look_at(asked_model(call.api, call.request));
  if (!entry.props) {
    const auto when_loaded = [](const ApiCall& loaded) { props(loaded); };
    return call_with_model(call.api, when_loaded, call.request, call.reply);
  }
  Json json = *entry.props;
  json["total_slots"] = call.api.options().n_parallel;
  json["build_info"] = call.api.fingerprint();
  json["is_sleeping"] = entry.state == ShelfState::kAsleep;
  call.send(json);
}

// How much each adapter counts for requests that do not say it.
void lora_adapters(const ApiCall& call) {
  auto list = Json::array();
  for (const ServedAdapter& adapter : call.served.adapters->list())
    list.push_back({{"id", list.size()}, {"path", adapter.path}, {"scale", adapter.scale}});
  call.send(list);
}

void set_lora_adapters(const ApiCall& call) {
  const Json body = parse_any_body(call.request.body);
  if (!body.is_array()) throw ApiError(400, "the body must be an array of objects");
  call.served.adapters->set_scales(read_adapter_scales(JsonField(body, "")));
  call.send({{"success", true}});
}

// Of several models each line has the name of its model as a label, unless the query names one.
void print_metrics(const ServerCall& call) {
  if (!call.api.options().offers_metrics)
    throw ApiError(501, "metrics are turned off on this server");
  const std::string asked = query_value(call.request.query, "model");
  ModelShelf& shelf = call.api.shelf();
  const std::vector<ModelShelf::Entry> entries =
      asked.empty() ? shelf.list() : std::vector{shelf.look_at(asked)};
  std::vector<ModelMetrics> models;
  for (const ModelShelf::Entry& entry : entries) {
    const std::string label = entries.size() == 1 ? "" : entry.card.name;
    models.push_back({label, *entry.metrics, entry.usage});
  }
  call.reply->send({200,
                    "text/plain; version=0.0.4",
                    metrics_text(models),
                    {{"Process-Start-Time-Unix", std::to_string(call.api.start_time())}}});
}

}  // namespace limpid
