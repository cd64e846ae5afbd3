// The options of `limpid serve`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/serve_models.h"
#include "server/api.h"
#include "server/http.h"

namespace limpid::cli {

struct ServeFlags {
  ModelFlags model;
  OfferFlags offer;
  GenerationFlags generation;
  HttpOptions http;
  int64_t port = 8080;
  int64_t n_threads_http = -1;
  int64_t timeout = 600;
  int64_t drain_time = 30;
  int64_t n_parallel = -1;  // -1: not given
  ServiceOptions service;
  int64_t sleep_idle_seconds = -1;
  bool adapters_off = false;
  std::vector<std::string> keys;
  std::string key_file;
  bool is_unified = false;
  bool thinks = true;
  std::string pooling;
  int64_t cache_ram = -1;  // ignored
  std::string chat_template;
  std::string template_file;
  ApiOptions api;
  bool ignored = true;  // what llama-server can switch, and is always so here
  bool log = true;
  bool log_is_json = false;
  bool logs_prompts = false;
};

void declare_serve(CLI::App& app, ServeFlags& values);

}  // namespace limpid::cli
