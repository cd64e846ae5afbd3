// llama-server's /lora-adapters: how much each adapter counts for requests that do not say it.
#include "server/api.h"

namespace limpid {

void lora_adapters(const ApiCall& call) {
  auto list = Json::array();
  for (const ServedAdapter& adapter : call.served.adapters->list())
    list.push_back({{"id", list.size()}, {"path", adapter.path}, {"scale", adapter.scale}});
  call.send(list);
}

// The body is an array, which parse_body does not take. It is put into an object here, so that
// errors name its parts.
void set_lora_adapters(const ApiCall& call) {
  const JsonBody body("{\"adapters\":" + call.request.body + "}");
  body.allow_only({"adapters"});
  call.served.adapters->set_scales(read_adapter_scales(body.required("adapters")));
  call.send({{"success", true}});
}

}  // namespace limpid
