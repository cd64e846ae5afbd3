// llama-server's /slots: what runs where, and the KV cache of a slot in a file.
//
// In llama-server a slot is a part of the cache that one request has for itself. Here all requests
// share one cache, and its blocks are found by the tokens in them. So a slot is only a number and
// the tokens of the last request that had it. To save it is to write the blocks of these tokens,
// and a restored slot serves any request that begins with them, whatever its number.
#include <algorithm>
#include <filesystem>

#include "base/parse_number.h"
#include "base/paths.h"
#include "base/stopwatch.h"
#include "generate/prefix_file.h"
#include "server/api.h"

namespace limpid {
namespace {

// Systems allow 255, and the file has a longer name until it is complete (base/atomic_file.h).
constexpr size_t kMostNameBytes = 220;

// A name without a folder, so that clients reach no other files.
std::string file_of(const ApiCall& call, const std::string& folder) {
  const JsonBody body(call.request.body);
  body.allow_only({"filename", "model"});
  const JsonField field = body.required("filename");
  const std::string& name = field.string();
  const bool is_plain =
      !name.empty() && name.front() != '.' && std::ranges::all_of(name, [](unsigned char c) {
        return c >= ' ' && c != '/' && c != '\\' && c != 127;
      });
  if (!is_plain) field.fail("must be the name of a file, without a folder");
  if (name.size() > kMostNameBytes) field.fail("is too long");
  return folder + "/" + name;
}

size_t slot_of(const ApiCall& call) {
  const std::string_view number =
      std::string_view(call.request.path).substr(std::string_view("/slots/").size());
  const auto slot = parse_number<int64_t>(number);
  if (!slot || *slot < 0) throw ApiError(400, "the slot in the path must be a number", "id_slot");
  call.check_slot(*slot);
  return static_cast<size_t>(*slot);
}

// A client may replace slots that were saved before, and nothing else in the folder: no other file,
// and no link, whatever it leads to.
int64_t save(GenerationService& service, size_t slot, const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_symlink(path, error) || (is_there(path) && !is_prefix_file(path)))
    throw ApiError(400, "a file of this name exists already, and is not a saved slot", "filename");
  return service.save_slot(slot, path);
}

// The messages of the library name files of the server, so the client gets shorter ones.
int64_t restore(GenerationService& service, size_t slot, const std::string& path) {
  if (!is_file(path)) throw ApiError(404, "the folder has no file of this name", "filename");
  const ApiError wrong(400, "the file holds no slot of this model and this type of KV cache",
                       "filename");
  try {
    return service.restore_slot(slot, path);
  } catch (const FormatError&) {
    throw wrong;
  } catch (const UnsupportedError&) {
    throw wrong;
  }
}

}  // namespace

void slots(const ApiCall& call) {
  if (!call.api.options().offers_slots) throw ApiError(501, "/slots is turned off on this server");
  const std::vector<GenerationService::Slot> all = call.served.service->slots();
  if (query_value(call.request.query, "fail_on_no_slot") == "1" &&
      std::ranges::all_of(all, &GenerationService::Slot::is_running))
    throw ApiError(503, "no slot is free");
  auto list = Json::array();
  for (const GenerationService::Slot& slot : all) {
    list.push_back({{"id", list.size()},
                    {"n_ctx", call.served.n_ctx()},
                    {"n_tokens", slot.n_tokens},
                    {"speculative", false},
                    {"is_processing", slot.is_running}});
  }
  call.send(list);
}

void slot_action(const ApiCall& call) {
  const std::string& folder = call.api.options().slot_folder;
  if (folder.empty()) throw ApiError(501, "saving slots is turned off on this server");
  const size_t slot = slot_of(call);
  const std::string action = query_value(call.request.query, "action");
  GenerationService& service = *call.served.service;
  Json answer = {{"id_slot", slot}};
  const Stopwatch stopwatch;
  if (action == "save" || action == "restore") {
    const bool saves = action == "save";
    const std::string path = file_of(call, folder);
    const int64_t n_tokens = saves ? save(service, slot, path) : restore(service, slot, path);
    const double milliseconds = stopwatch.seconds() * 1000;
    answer.update({{"filename", std::filesystem::path(path).filename()},
                   {saves ? "n_saved" : "n_restored", n_tokens},
                   {saves ? "n_written" : "n_read", size_of_file(path)},
                   {"timings", {{saves ? "save_ms" : "restore_ms", milliseconds}}}});
  } else if (action == "erase") {
    answer.update({{"n_erased", service.erase_slot(slot)}});
  } else {
    throw ApiError(400, "action must be save, restore or erase, not '" + action + "'", "action");
  }
  call.send(answer);
}

}  // namespace limpid
