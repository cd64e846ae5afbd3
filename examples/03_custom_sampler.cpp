// Writes a lipogram: a sampler of our own bans every token with a given letter in it.
//   03_custom_sampler MODEL.gguf e "Once upon a day, a small dog"
#include <iostream>
#include <limpid/limpid.hpp>
#include <string>
#include <vector>

class WithoutLetter : public limpid::Sampler {
 public:
  WithoutLetter(const limpid::LanguageModel& model, char letter) : banned_(model.vocab_size()) {
    for (limpid::TokenId id = 0; id < model.vocab_size(); ++id)
      banned_[id] = model.decode({&id, 1}).find(letter) != std::string::npos;
  }
  std::string_view name() const override { return "without_letter"; }
  void apply(limpid::Candidates& candidates, const limpid::SamplerContext&) override {
    candidates.remove_if([this](const limpid::Candidate& c) { return banned_[c.id]; });
  }

 private:
  std::vector<bool> banned_;
};

int main(int argc, char** argv) try {
  if (argc != 4) return std::cerr << "usage: " << argv[0] << " MODEL.gguf LETTER TEXT\n", 1;
  const auto model = limpid::LanguageModel::open(argv[1]);
  limpid::Session session(model);

  limpid::GenerationOptions options;
  options.n_predict = 60;
  options.sampler.custom = {std::make_shared<WithoutLetter>(model, argv[2][0])};
  std::cout << argv[3];
  for (std::string_view piece : session.generate(argv[3], options))
    std::cout << piece << std::flush;
  std::cout << "\n";
} catch (const limpid::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
