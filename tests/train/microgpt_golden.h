// Losses of the original Python, as tests/data/microgpt keeps them.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace limpid::microgpt {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Lines "step loss [...]" and, after a line "samples", one sample per line.
struct Golden {
  std::vector<double> losses;
  std::vector<std::string> samples;
};

inline Golden read_golden(const std::string& path) {
  Golden golden;
  std::istringstream text(read_file(path));
  bool in_samples = false;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line[0] == '#') continue;
    if (line == "samples") {
      in_samples = true;
    } else if (in_samples) {
      golden.samples.push_back(line);
    } else {
      std::istringstream fields(line);
      int step = 0;
      double loss = 0;
      fields >> step >> loss;
      golden.losses.push_back(loss);
    }
  }
  return golden;
}

}  // namespace limpid::microgpt
