#include "cli/options.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>

#include "cli/serve_flags.h"
#include "limpid/error.hpp"

namespace limpid::cli {
namespace {

TEST(ParseIntegers, AnySeparator) {
  EXPECT_EQ(parse_integers("1,2,3", "x"), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(parse_integers("[1, -2,\n3]\n", "x"), (std::vector<int64_t>{1, -2, 3}));
  EXPECT_TRUE(parse_integers(" \n", "x").empty());
}

TEST(ParseIntegers, RefusesWhatIsNone) {
  for (const char* text : {"1,two", "1.5", "3x", "99999999999999999999"}) {
    EXPECT_THROW(parse_integers(text, "x"), ArgumentError) << text;
  }
  EXPECT_THROW(parse_token_ids("-1", "x"), ArgumentError);
  EXPECT_THROW(parse_token_ids("4294967296", "x"), ArgumentError);
}

TEST(Unescape, KnownEscapesOnly) {
  EXPECT_EQ(unescape(R"(a\nb\t\x41\\n\q\)"), "a\nb\tA\\n\\q\\");
  EXPECT_EQ(unescape(R"(a\x-5b)"), R"(a\x-5b)");
}

// Values of a command line, and the message of the ArgumentError that it caused, or "".
template <typename Flags>
std::string set(Flags& values, void (*declare)(CLI::App&, Flags&), const Arguments& arguments) {
  CLI::App app;
  declare(app, values);
  try {
    parse(app, "run", arguments);
    return "";
  } catch (const ArgumentError& error) {
    return error.what();
  }
}

std::string generate(const Arguments& arguments, GenerationFlags& values) {
  return set(values, declare_generation, arguments);
}

TEST(GenerationFlags, LogitBias) {
  GenerationFlags values;
  EXPECT_EQ(generate({"-l", "15043+1.5", "-l", "7-2", "--logit-bias=9-inf"}, values), "");
  const auto bias = values.options.sampler.logit_bias;
  ASSERT_EQ(bias.size(), 3U);
  EXPECT_EQ(bias[0].id, 15043);
  EXPECT_EQ(bias[0].bias, 1.5F);
  EXPECT_EQ(bias[1].bias, -2.0F);
  EXPECT_TRUE(std::isinf(bias[2].bias) && bias[2].bias < 0);
  for (const char* wrong : {"15043", "x+1", "1+", "1+1x", "+1"}) {
    EXPECT_EQ(generate({"-l", wrong}, values),
              fmt::format("-l: '{}' is not a token id, a sign and a number, as in 15043+1.5 or "
                          "15043-inf",
                          wrong));
  }
}

TEST(GenerationFlags, OfAllKindsArriveInTheOptions) {
  GenerationFlags values;
  EXPECT_EQ(
      generate({"-n", "-2", "--stop", "a", "-r", "b", "--ignore-eos", "--context-shift", "--keep",
                "-1", "--special", "-s", "7", "--temp", "0.25", "--samplers", "temperature"},
               values),
      "");
  const GenerationOptions& options = values.options;
  EXPECT_EQ(options.n_predict, -2);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(options.context_shift && options.show_special && options.sampler.ignore_eos);
  EXPECT_EQ(options.n_keep, -1);
  EXPECT_EQ(options.sampler.seed, 7);
  EXPECT_EQ(options.sampler.temperature, 0.25F);
  EXPECT_EQ(options.sampler.order, "temperature");
  EXPECT_EQ(values.given_settings, (std::vector<std::string>{"seed", "temp"}));
}

TEST(GenerationFlags, RangesAreChecked) {
  GenerationFlags values;
  EXPECT_EQ(generate({"--min-p", "1.5"}, values), "--min-p: 1.5 must be in [0, 1]");
  EXPECT_EQ(generate({"-n", "-3"}, values), "-n: -3 must be at least -2");
  EXPECT_NE(generate({"--repeat-penalty", "0"}, values), "");
  EXPECT_NE(generate({"--temp", "nan"}, values), "");
}

std::string open(const Arguments& arguments, ModelFlags& values) {
  const auto declare = [](CLI::App& app, ModelFlags& flags) { declare_model(app, flags); };
  return set<ModelFlags>(values, declare, arguments);
}

TEST(ModelFlags, TheSmallerBatchCounts) {
  ModelFlags values;
  EXPECT_EQ(to_open_options(values).n_batch, 512);
  EXPECT_EQ(open({"-b", "64"}, values), "");
  EXPECT_EQ(to_open_options(values).n_batch, 64);
}

TEST(ModelFlags, LayersOnADevice) {
  const auto layers = [](const Arguments& arguments) {
    ModelFlags values;
    EXPECT_EQ(open(arguments, values), "");
    return to_open_options(values).gpu_layers;
  };
  EXPECT_EQ(layers({}), OpenOptions::kLayersThatFit);
  EXPECT_EQ(layers({"--gpu-layers", "auto"}), OpenOptions::kLayersThatFit);
  EXPECT_EQ(layers({"-ngl", "-1"}), OpenOptions::kLayersThatFit);
  EXPECT_EQ(layers({"-ngl", "8"}), 8);
  EXPECT_EQ(layers({"--n-gpu-layers", "0"}), 0);
  EXPECT_GE(layers({"--gpu-layers", "all"}), 1'000'000);
  ModelFlags values;
  for (const char* wrong : {"-2", "some", "1.5", ""})
    EXPECT_NE(open({"-ngl", wrong}, values), "") << wrong;
}

TEST(ModelFlags, WhereTheOtherLayersLieAndWhatIsMultiplied) {
  ModelFlags values;
  EXPECT_EQ(to_open_options(values).split, "cpu");
  EXPECT_EQ(to_open_options(values).products, "f32");
  EXPECT_EQ(open({"--split", "cuda:1", "--products", "f16"}, values), "");
  EXPECT_EQ(to_open_options(values).split, "cuda:1");
  EXPECT_EQ(to_open_options(values).products, "f16");
}

TEST(ModelFlags, AFileOfARepositoryNeedsTheRepository) {
  ModelFlags values;
  EXPECT_EQ(open({"-hff", "a.gguf"}, values), "-hff requires -hf");
  EXPECT_EQ(open({"-hff", "a.gguf", "-hf", "a/b"}, values), "");
}

TEST(ModelFlags, AModelAndARepositoryAreAMistakeOnTheCommandLineOnly) {
  for (const char* model : {"-m", "--"}) {  // the option, and the position
    ModelFlags values;
    EXPECT_EQ(open({"-hf", "a/b", model, "x.gguf"}, values),
              "-hf: -m names a model too; give one of them");
    setenv("LLAMA_ARG_HF_REPO", "a/b", 1);
    values = {};
    EXPECT_EQ(open({model, "x.gguf"}, values), "");
    EXPECT_EQ(values.repository, "");
    EXPECT_EQ(open({}, values), "");
    EXPECT_EQ(values.repository, "a/b");
    unsetenv("LLAMA_ARG_HF_REPO");
  }
  setenv("LLAMA_ARG_MODEL", "x.gguf", 1);
  ModelFlags values;
  EXPECT_EQ(open({"-hf", "a/b"}, values), "");
  EXPECT_EQ(values.repository, "a/b");
  EXPECT_EQ(values.model, "");
  setenv("LLAMA_ARG_HF_REPO", "c/d", 1);
  EXPECT_EQ(open({}, values), "");
  unsetenv("LLAMA_ARG_HF_REPO");
  unsetenv("LLAMA_ARG_MODEL");
}

TEST(ModelFlags, ThreadsOnTheCommandLinePrecedeThoseOfTheEnvironment) {
  setenv("LLAMA_ARG_THREADS_BATCH", "4", 1);
  ModelFlags values;
  EXPECT_EQ(open({"-t", "2"}, values), "");
  EXPECT_EQ(to_open_options(values).n_threads, 2);
  EXPECT_EQ(open({"-t", "2", "-tb", "4"}, values), "");
  EXPECT_THROW(to_open_options(values), ArgumentError);
  unsetenv("LLAMA_ARG_THREADS_BATCH");
}

TEST(ServeFlags, ModelsOnTheCommandLinePrecedeThoseOfTheEnvironment) {
  setenv("LLAMA_ARG_MODEL", "x.gguf", 1);
  setenv("LLAMA_ARG_HF_REPO", "a/b", 1);
  setenv("LLAMA_ARG_MODELS_DIR", "dir", 1);
  const auto sources = [](const Arguments& arguments) {
    ServeFlags values;
    EXPECT_EQ(set(values, declare_serve, arguments), "");
    return fmt::format("{} {} {}", values.offer.models.empty() ? "" : values.offer.models[0],
                       values.model.repository, values.offer.folder);
  };
  EXPECT_EQ(sources({}), "x.gguf a/b dir");
  EXPECT_EQ(sources({"-m", "y.gguf"}), "y.gguf  ");
  EXPECT_EQ(sources({"-hf", "c/d"}), " c/d ");
  EXPECT_EQ(sources({"--models-dir", "d"}), "  d");
  EXPECT_EQ(sources({"-m", "y.gguf", "-hf", "c/d"}), "y.gguf c/d ");
  for (const char* name : {"LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO", "LLAMA_ARG_MODELS_DIR"})
    unsetenv(name);
}

TEST(ServeFlags, ReasoningHasTheWordsOfLlamaServer) {
  ServeFlags values;
  for (const char* text : {"off", "0", "false", "disabled"}) {
    EXPECT_EQ(set(values, declare_serve, {"--reasoning", text}), "");
    EXPECT_FALSE(values.thinks) << text;
  }
  for (const char* text : {"on", "1", "true", "enabled", "auto", "-1"}) {
    EXPECT_EQ(set(values, declare_serve, {"--reasoning", text}), "");
    EXPECT_TRUE(values.thinks) << text;
  }
  EXPECT_EQ(set(values, declare_serve, {"-rea", "maybe"}), "-rea: 'maybe' is not on, off or auto");
}

TEST(ServeFlags, ATemplateOnTheCommandLinePrecedesAFileOfTheEnvironment) {
  setenv("LLAMA_ARG_CHAT_TEMPLATE_FILE", "env.jinja", 1);
  for (const auto& [arguments, file] :
       {std::pair<Arguments, std::string>{{}, "env.jinja"},
        {{"--chat-template", "chatml"}, ""},
        {{"--chat-template-file", "a.jinja"}, "a.jinja"},
        {{"--chat-template", "chatml", "--chat-template-file", "a.jinja"}, "a.jinja"}}) {
    ServeFlags values;
    EXPECT_EQ(set(values, declare_serve, arguments), "");
    EXPECT_EQ(values.template_file, file);
  }
  unsetenv("LLAMA_ARG_CHAT_TEMPLATE_FILE");
}

TEST(ModelFlags, RangesAreChecked) {
  ModelFlags values;
  EXPECT_EQ(open({"-b", "0"}, values), "-b: 0 must be at least 1");
  EXPECT_EQ(open({"-c", "-5"}, values), "-c: -5 must be at least 0");
  EXPECT_EQ(open({"-t", "99999"}, values), "-t: 99999 must be at most 1024");
  values = {};
  values.options.cache_type_k = "q3";
  EXPECT_THROW(to_open_options(values), ArgumentError);
  values = {};
  values.options.n_threads = 2;
  values.n_threads_batch = 4;
  EXPECT_THROW(to_open_options(values), ArgumentError);
}

}  // namespace
}  // namespace limpid::cli
