// Chat formats by name, for models that carry no template or another one than they learned with.
#pragma once

#include <string>
#include <string_view>

namespace limpid {

// The Jinja text of a format, under llama.cpp's name for it: chatml, command-r, gemma, llama3, phi3
// or zephyr. "" for any other name. The text writes no BOS: see ServedModel::adds_bos.
std::string_view built_in_template(std::string_view name);
// The names, with commas between.
std::string built_in_template_names();

}  // namespace limpid
