// llama-server's /lora-adapters: how much each adapter counts for requests that do not say it.
#include "server/api.h"

namespace limpid {

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

}  // namespace limpid
