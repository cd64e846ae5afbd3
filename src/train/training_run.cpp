#include "train/training_run.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/json_text.h"
#include "base/parse_number.h"
#include "base/paths.h"
#include "base/printable.h"
#include "base/stopwatch.h"
#include "executor/executors.h"
#include "layouts/lora_adapter.h"
#include "model/configuration.h"
#include "model/decoder_from_checkpoint.h"
#include "model/model_files.h"
#include "model/tokenizer_from_metadata.h"
#include "tokenizer/tokenizer_files.h"
#include "tokenizer/tokenizer_json_writer.h"
#include "train/initial_weights.h"
#include "train/new_adapter.h"
#include "train/run_report.h"
#include "train/simple_tokenizers.h"
#include "train/value_histogram.h"

namespace limpid {

namespace {

namespace fs = std::filesystem;

// The tokenizer's files. A tokenizer that is made here is written to the run's folder.
TokenizerFiles tokenizer_files(const RunSettings& settings, const std::string& folder) {
  const std::string& wanted = settings.tokenizer;
  if (!is_made_tokenizer(wanted)) {
    LIMPID_CHECK(ArgumentError, !wanted.empty() || !is_configuration_name(settings.config),
                 "the configuration {} has no tokenizer; name the file of one, or `bytes` or "
                 "`chars`",
                 settings.config);
    std::string path = wanted.empty() ? settings.config : wanted;
    if (wanted.empty() && is_file(path)) path = folder_of(path).string();
    LIMPID_CHECK(
        ArgumentError, fs::exists(path),
        "RunSettings::tokenizer: {} does not exist; name a file or a folder, or `bytes` or `chars`",
        path);
    TokenizerFiles files = find_tokenizer_files(path);
    LIMPID_CHECK(ArgumentError, has_tokenizer(files),
                 "{} has no tokenizer; name the file of one, or `bytes` or `chars`", path);
    return files;
  }
  const std::string path = (fs::path(folder) / "tokenizer.json").string();
  if (!fs::exists(path)) {
    // A character that no piece spells has no token, so those of a held-out file count too.
    std::vector<std::string> texts = settings.data;
    if (!parse_number<double>(settings.val)) texts.push_back(settings.val);
    const TokenizerSpec spec =
        wanted == "bytes" ? byte_tokenizer() : character_tokenizer(read_texts(texts));
    if (spec.eos) {
      const nlohmann::json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                                  {"eos_token", spec.pieces[static_cast<size_t>(*spec.eos)]}};
      write_file((fs::path(folder) / "tokenizer_config.json").string(), config.dump(2) + "\n");
    }
    write_file(path, write_tokenizer_json(spec));
  }
  return find_tokenizer_files(path);
}

// Gives the embedding as many rows as the tokenizer has tokens.
void set_vocab_size(Checkpoint& shapes, int64_t n) {
  const std::string architecture(shapes.metadata.string("general.architecture").value_or(""));
  shapes.metadata.set(architecture + ".vocab_size", {n, "u32"});
  for (const char* name : {"token_embd.weight", "output.weight"}) {
    if (const auto found = shapes.tensors.find(name); found != shapes.tensors.end())
      found->second.shape = Shape{n, found->second.shape.cols()};
  }
}

// A new model as names and shapes.
std::shared_ptr<const Checkpoint> new_model(const RunSettings& settings,
                                            const std::string& folder) {
  Checkpoint shapes = find_configuration(settings.config);
  replace_tokenizer(shapes, tokenizer_files(settings, folder));
  set_vocab_size(shapes, tokenizer_from(shapes)->vocab_size());
  return std::make_shared<const Checkpoint>(std::move(shapes));
}

bool begins_anew(const RunSettings& settings, const std::optional<RunFolder::SavedStep>& saved) {
  return !saved && settings.model.empty();
}

// The rows of an embedding mean the tokens of the tokenizer that the model learned with. Another
// tokenizer may take its place if it has the same tokens: one with a chat template, for example.
// Control tokens may have other names, and tokens may have been added (check_ids).
void check_same_tokens(const Checkpoint& model, const RunSettings& settings) {
  std::shared_ptr<const Tokenizer> own;
  try {
    own = tokenizer_from(open_model_files({settings.model}));
  } catch (const Error&) {
    return;  // the model has none, or none that can be read
  }
  const auto other = tokenizer_from(model);
  for (TokenId id = 0; id < std::min(own->vocab_size(), other->vocab_size()); ++id) {
    const auto is_normal = [&](const Tokenizer& tokenizer) {
      return tokenizer.spec().types[static_cast<size_t>(id)] == TokenType::kNormal;
    };
    const std::string_view ours = own->bytes_of(id);
    const std::string_view theirs = other->bytes_of(id);
    LIMPID_CHECK(
        ArgumentError, !is_normal(*own) || !is_normal(*other) || ours == theirs,
        "RunSettings::tokenizer: {} has other tokens than {}, whose embedding belongs to its own "
        "tokenizer: token {} is '{}' and not '{}'; leave RunSettings::tokenizer out, or "
        "train a new model (RunSettings::config) with it",
        settings.tokenizer, settings.model, id, printable(theirs), printable(ours));
  }
}

Checkpoint open_model(const RunSettings& settings) {
  LIMPID_CHECK(ArgumentError, is_there(settings.model),
               "the model {} does not exist; if it has moved, give its new path as "
               "RunSettings::model",
               settings.model);
  Checkpoint model = open_model_files({settings.model, settings.tokenizer});
  if (!settings.tokenizer.empty()) check_same_tokens(model, settings);
  LIMPID_CHECK(ArgumentError, has_tokenizer(model), "{} has no tokenizer; name the file of one",
               settings.model);
  return model;
}

// Says how the run can go on without the checkpoint; `question` comes before that.
[[noreturn]] void throw_unreadable(const RunFolder::SavedStep& saved, const Error& error,
                                   const std::string& question = "") {
  throw_format_error(saved.path, "checkpoint",
                     "cannot be read ({}); {}without this folder, the run {}", error.what(),
                     question,
                     saved.before.empty() ? "begins anew" : "goes on from " + saved.before);
}

// Calls `read`, which reads the checkpoint: all of it was made by the run, so every error means
// that it was damaged later.
template <typename Read>
auto read_saved(const RunFolder::SavedStep& saved, Read read, const std::string& question = "") {
  try {
    return read();
  } catch (const Error& error) {
    throw_unreadable(saved, error, question);
  }
}

// Returns the newest checkpoint, or what the run begins with: for a new model, its shapes. The
// checkpoint of an adapter has only the adapter, so the model is opened too.
std::shared_ptr<const Checkpoint> open_or_make(const RunFolder& folder,
                                               const std::optional<RunFolder::SavedStep>& saved) {
  const RunSettings& settings = folder.settings();
  if (settings.lora > 0) {
    auto adapted = std::make_shared<Checkpoint>(open_model(settings));
    if (saved) {
      read_saved(
          *saved, [&] { add_lora_adapter(*adapted, saved->path); },
          fmt::format("is {} the model that the run began with? ", settings.model));
    } else {
      add_new_adapter(*adapted, settings.lora, settings.lora_alpha, settings.lora_targets,
                      static_cast<uint64_t>(settings.seed));
    }
    return adapted;
  }
  if (begins_anew(settings, saved)) return new_model(settings, folder.path());
  if (!saved) return std::make_shared<Checkpoint>(open_model(settings));
  return std::make_shared<Checkpoint>(
      read_saved(*saved, [&] { return open_model_files({saved->path}); }));
}

// A file of its own, or a share of the data. A share that is too short for one sequence is not held
// out.
DocumentView read_held_out(const RunSettings& settings, int64_t seq_len, DocumentView& documents,
                           const Tokenizer& tokenizer, const ChatTemplate* chat_template,
                           const DataOptions& options) {
  const auto share = parse_number<double>(settings.val);
  if (!share) {
    DocumentView held_out = read_documents({&settings.val, 1}, tokenizer, chat_template, options);
    LIMPID_CHECK(ArgumentError, held_out.n_tokens() > seq_len,
                 "{} has {} tokens; to hold out a sequence of {} it needs at least {}: hold out "
                 "more text, or take shorter sequences",
                 settings.val, held_out.n_tokens(), seq_len, seq_len + 1);
    return held_out;
  }
  LIMPID_CHECK(ArgumentError, *share >= 0 && *share < 1,
               "RunSettings::val, the share of held-out data, is {}; it must be in [0, 1)", *share);
  const DocumentView all = documents;
  DocumentView held_out = split_off(documents, *share);
  if (held_out.n_tokens() > seq_len) return held_out;
  documents = all;
  return {};
}

// A tokenizer may have more tokens than the embedding has rows: one was added to it, and the model
// was not resized. Texts with none of them can be learned.
void check_ids(const DocumentView& documents, const Checkpoint& checkpoint,
               const Tokenizer& tokenizer) {
  const TensorView* embedding = checkpoint.find("token_embd.weight");
  if (embedding == nullptr || tokenizer.vocab_size() <= embedding->shape[0]) return;
  const auto largest = std::ranges::max_element(documents.ids);
  LIMPID_CHECK(
      ArgumentError, largest == documents.ids.end() || *largest < embedding->shape[0],
      "the data has the token {} ({}), and the embedding of {} has {} rows: leave that text "
      "out, or resize the model",
      *largest, printable(tokenizer.bytes_of(*largest, true)), checkpoint.path,
      embedding->shape[0]);
}

// A tokenizer of the data's characters has no token for another one, and encode() leaves it out.
void check_sample_prompt(const std::string& prompt, const Tokenizer& tokenizer,
                         int64_t n_positions) {
  const std::string lost = lost_character(prompt, tokenizer);
  LIMPID_CHECK(ArgumentError, lost.empty(),
               "RunSettings::sample_prompt has the character '{}', for which the tokenizer has no "
               "token: leave "
               "it out",
               printable(lost));
  const int64_t n_tokens = std::ssize(tokenizer.encode(prompt));
  LIMPID_CHECK(ArgumentError, n_tokens <= n_positions,
               "RunSettings::sample_prompt has {} tokens, and the model {} positions: shorten it",
               n_tokens, n_positions);
}

// What a run needs before it takes memory for its model. `plan` decides whether there is enough: a
// run that the system kills after an hour, when the first long batch comes, has wasted the hour.
struct Inputs {
  std::optional<RunFolder::SavedStep> saved;
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<const Tokenizer> tokenizer;
  DocumentView documents;
  DocumentView held_out;
  TrainingOptions training;
  TrainingPlan plan;
};

Inputs open_inputs(const RunFolder& folder, const RunOptions& options) {
  const RunSettings& settings = folder.settings();
  settings.check();
  Inputs inputs;
  inputs.saved = folder.newest();
  LIMPID_CHECK(ArgumentError, !inputs.saved || inputs.saved->n_updates <= settings.steps,
               "the run has taken {} steps already, more than {}", inputs.saved->n_updates,
               settings.steps);
  inputs.checkpoint = open_or_make(folder, inputs.saved);
  const Checkpoint& checkpoint = *inputs.checkpoint;
  inputs.training = settings.training_options(checkpoint, options.n_threads);
  const auto read_tokenizer = [&] { return tokenizer_from(checkpoint); };
  const bool is_saved = inputs.saved && settings.lora == 0;
  inputs.tokenizer = is_saved ? read_saved(*inputs.saved, read_tokenizer) : read_tokenizer();
  check_sample_prompt(settings.sample_prompt, *inputs.tokenizer, read_spec(checkpoint).n_ctx_train);
  std::optional<ChatTemplate> chat_template;
  if (const auto source = checkpoint.metadata.string("tokenizer.chat_template"))
    chat_template.emplace(std::string(*source));
  const ChatTemplate* dialogues = chat_template ? &*chat_template : nullptr;
  inputs.documents = read_documents(settings.data, *inputs.tokenizer, dialogues, options);
  inputs.held_out = read_held_out(settings, inputs.training.seq_len, inputs.documents,
                                  *inputs.tokenizer, dialogues, options);
  check_length(inputs.documents.n_tokens(), inputs.training.seq_len);
  check_ids(inputs.documents, checkpoint, *inputs.tokenizer);
  check_ids(inputs.held_out, checkpoint, *inputs.tokenizer);
  inputs.training.ranks = options.ranks;
  inputs.plan = make_training_plan(checkpoint, inputs.training, inputs.documents, inputs.held_out);
  inputs.plan.n_done = inputs.saved ? inputs.saved->n_updates : 0;
  return inputs;
}

}  // namespace

std::string to_json_line(const RunReport& report) {
  nlohmann::ordered_json json{
      {"step", report.step.step},       {"loss", report.step.loss},
      {"lr", report.step.lr},           {"grad_norm", report.step.grad_norm},
      {"tokens", report.step.n_tokens}, {"tokens_per_second", report.tokens_per_second}};
  if (report.step.loss_scale != 1) json["loss_scale"] = report.step.loss_scale;
  if (report.step.skipped) json["skipped"] = true;
  if (report.val_loss) json["val_loss"] = *report.val_loss;
  return json.dump();
}

TrainingPlan plan_run(const RunFolder& folder, const RunOptions& options) {
  return open_inputs(folder, options).plan;
}

TrainingRun::TrainingRun(RunFolder folder, const RunOptions& options)
    : folder_(std::move(folder)), ranks_(options.ranks), n_threads_(options.n_threads) {
  const RunSettings& settings = folder_.settings();
  Inputs inputs = open_inputs(folder_, options);
  plan_ = inputs.plan;
  if (ranks_->rank() == 0) check_training_plan(plan_);
  const auto& saved = inputs.saved;
  if (begins_anew(settings, saved)) {
    inputs.checkpoint =
        with_initial_weights(*inputs.checkpoint, static_cast<uint64_t>(settings.seed));
  }
  tokenizer_ = inputs.tokenizer;
  first_token_ = inputs.documents.ids.front();
  trainer_ = std::make_unique<Trainer>(
      *inputs.checkpoint, make_cpu_executor({.n_threads = options.n_threads}), inputs.training,
      std::move(inputs.documents), std::move(inputs.held_out));
  if (saved) {
    const std::string state = (fs::path(saved->path) / kStateFile).string();
    try {
      trainer_->load_state(state);
    } catch (const ArgumentError&) {  // of other data
      throw;
    } catch (const Error& error) {
      throw_unreadable(*saved, error);
    }
    if (trainer_->n_updates() != saved->n_updates) {
      throw_format_error(state, "updates", "is {}, but the folder is that of step {}",
                         trainer_->n_updates(), saved->n_updates);
    }
  }
  saved_at_ = saved ? saved->n_updates : -1;
  if (ranks_->rank() == 0) folder_.begin(trainer_->n_updates());
}

// A step measures first and changes the weights last. Held-out loss, sample, checkpoint and the
// loss in the log are all of the same weights, those after n_updates() updates. So line 0 of the
// log is the untrained model, whose loss should be near ln(vocab_size): 4.17 for 65 characters.
//
// The loss is measured before a checkpoint is saved. So a model whose loss is not finite never
// takes the place of the last good checkpoint.
RunReport TrainingRun::step() {
  const RunSettings& settings = folder_.settings();
  const int64_t n_updates = trainer_->n_updates();
  const auto due = [&](int64_t every) {
    return (every > 0 && n_updates % every == 0) || n_updates == settings.steps;
  };
  RunReport report;
  const int64_t n_tokens_before = trainer_->n_tokens_seen();
  Stopwatch measuring;
  report.step = trainer_->measure();
  double seconds = measuring.seconds();
  const bool evaluates = due(settings.eval_every);
  const bool writes = ranks_->rank() == 0;
  HistogramLine histograms;
  if (evaluates && writes) {
    histograms = histograms_of(n_updates, trainer_->model().parameters(), report.step.loss_scale);
  }
  if (evaluates && trainer_->has_held_out()) report.val_loss = trainer_->held_out_loss();
  if (writes && settings.sample_every > 0 && due(settings.sample_every))
    report.sample =
        sample_text(trainer_->model().checkpoint(), tokenizer_, settings, first_token_, n_threads_);
  const bool saved =
      due(settings.save_every) && (n_updates > 0 || settings.steps == 0) && save_checkpoint();
  finished_ = n_updates == settings.steps;
  Stopwatch updating;
  if (!finished_) trainer_->update(report.step);
  seconds += updating.seconds();
  report.tokens_per_second = static_cast<double>(report.step.n_tokens - n_tokens_before) / seconds;
  if (!writes) return report;
  folder_.append(kLogFile, to_json_line(report));
  if (report.sample) {
    const nlohmann::ordered_json sample{{"step", report.step.step},
                                        {"prompt", report.sample->prompt},
                                        {"text", report.sample->text}};
    folder_.append(kSamplesFile, dump_json(sample));
  }
  if (evaluates) folder_.append(kHistogramsFile, to_json_line(histograms));
  if (evaluates || saved) write_run_report(folder_.path());
  return report;
}

bool TrainingRun::save_checkpoint() {
  if (saved_at_ == trainer_->n_updates() || ranks_->rank() > 0) return false;
  folder_.save(*trainer_);
  saved_at_ = trainer_->n_updates();
  return true;
}

void TrainingRun::save() {
  // Weights that diverged must not replace a checkpoint: this throws for them.
  if (!finished_) trainer_->measure();
  if (save_checkpoint()) write_run_report(folder_.path());
}

}  // namespace limpid
