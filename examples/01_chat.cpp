// Chats with a model: a line in, an answer out as it is generated. End with Ctrl-D.
//   01_chat MODEL.gguf
#include <iostream>
#include <limpid/limpid.hpp>
#include <string>

int main(int argc, char** argv) try {
  if (argc != 2) return std::cerr << "usage: " << argv[0] << " MODEL.gguf\n", 1;
  limpid::Chat chat(limpid::LanguageModel::open(argv[1]));
  for (std::string line; std::cout << "> " && std::getline(std::cin, line);) {
    for (std::string_view piece : chat.ask(line)) std::cout << piece << std::flush;
    std::cout << "\n";
  }
} catch (const limpid::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
