#include "tokenizer/tokenizer_pipeline.h"

#include <cctype>

#include "limpid/error.hpp"
#include "tokenizer/pre_tokenizer.h"

namespace limpid {
namespace {

std::string_view type_of(const JsonPlace& component) { return component["type"].string(); }

// Returns the parts of a "Sequence", the component itself, or nothing.
std::vector<JsonPlace> parts_of(const std::optional<JsonPlace>& component, std::string_view list) {
  std::vector<JsonPlace> parts;
  if (!component) return parts;
  if (type_of(*component) != "Sequence") return {*component};
  component->allow_keys({"type", list});
  for (const JsonPlace& part : (*component)[list].elements()) {
    if (type_of(part) == "Sequence") part.unsupported("is a sequence in a sequence");
    parts.push_back(part);
  }
  return parts;
}

[[noreturn]] void refuse(const JsonPlace& component, std::string_view what) {
  component.unsupported("the {} '{}' is not supported", what, type_of(component));
}

// {"String": …} or {"Regex": …}
struct Pattern {
  std::string text;
  bool is_regex;
};
Pattern read_pattern(const JsonPlace& component) {
  const JsonPlace pattern = component["pattern"];
  pattern.allow_keys({"String", "Regex"});
  const auto regex = pattern.find("Regex");
  if (regex) return {std::string(regex->string()), true};
  return {std::string(pattern["String"].string()), false};
}

// Refuses a string option with any other value.
void expect(const JsonPlace& component, std::string_view key, std::string_view wanted) {
  const JsonPlace value = component[key];
  if (value.string() != wanted)
    value.unsupported("is '{}'; only '{}' is supported", value.string(), wanted);
}

// Replace(a -> b), both strings.
void expect_replacement(const JsonPlace& component, std::string_view from, std::string_view to) {
  component.allow_keys({"type", "pattern", "content"});
  const Pattern pattern = read_pattern(component);
  if (pattern.is_regex || pattern.text != from)
    component["pattern"].unsupported("only the string '{}' is supported", from);
  expect(component, "content", to);
}

// The effect of all normalizers together.
struct Normalizer {
  bool nfc = false;
  bool prepends = false;
  bool replaces = false;  // replaces " " by U+2581
};

// Recognises NFC, and SentencePiece's pair of Prepend and Replace; refuses all others.
Normalizer read_normalizer(const JsonPlace& root) {
  Normalizer normalizer;
  for (const JsonPlace& part : parts_of(root.find("normalizer"), "normalizers")) {
    const std::string_view type = type_of(part);
    if (type == "NFC") {
      part.allow_keys({"type"});
      normalizer.nfc = true;
    } else if (type == "Prepend" && !normalizer.replaces) {
      part.allow_keys({"type", "prepend"});
      expect(part, "prepend", kSpaceMark);
      if (normalizer.prepends) part.unsupported("prepends twice");
      normalizer.prepends = true;
    } else if (type == "Replace") {
      expect_replacement(part, " ", kSpaceMark);
      normalizer.replaces = true;
    } else {
      refuse(part, "normalizer");
    }
  }
  return normalizer;
}

SplitStep read_split(const JsonPlace& part) {
  part.allow_keys({"type", "pattern", "behavior", "invert"});
  const Pattern pattern = read_pattern(part);
  SplitStep step;
  if (pattern.is_regex) {
    step.pattern = pattern.text;
  } else {
    for (const char c : pattern.text) {
      if (static_cast<uint8_t>(c) < 0x80 && std::isalnum(static_cast<uint8_t>(c)) == 0)
        step.pattern.push_back('\\');
      step.pattern.push_back(c);
    }
  }
  const JsonPlace behavior = part["behavior"];
  const bool invert = part["invert"].boolean();
  if (behavior.string() == "Removed" && invert) {
    step.drop_gaps = true;
  } else if (behavior.string() == "Contiguous" && !invert) {
    step.contiguous = true;
  } else if (behavior.string() != "Isolated") {
    behavior.unsupported("'{}'{} is not supported", behavior.string(),
                         invert ? " with \"invert\"" : "");
  }
  return step;
}

// Metaspace replaces spaces by U+2581 and adds one by its scheme: "always", "first" or "never".
SpacePrefix read_metaspace(const JsonPlace& part) {
  part.allow_keys(
      {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  expect(part, "replacement", kSpaceMark);
  std::string_view scheme = part.string("prepend_scheme", "always");
  if (!part.boolean("add_prefix_space", true)) scheme = "never";
  if (scheme == "always") return SpacePrefix::kEveryPartOnce;
  if (scheme == "first") return SpacePrefix::kFirstPartOnce;
  if (scheme != "never") part["prepend_scheme"].fail("is not one of always, first and never");
  return SpacePrefix::kNone;
}

// The effect of all pre-tokenizers together.
struct PreTokenization {
  std::vector<SplitStep> steps;
  bool byte_level = false;
  std::optional<SpacePrefix> metaspace;
};

// Steps are collected until "ByteLevel" or "Metaspace", which must be the last one. The caller
// looks for a hand-written scanner for the collected steps.
PreTokenization read_pre_tokenizer(const JsonPlace& root) {
  PreTokenization found;
  for (const JsonPlace& part : parts_of(root.find("pre_tokenizer"), "pretokenizers")) {
    const std::string_view type = type_of(part);
    constexpr size_t kMostSteps = 16;
    if (found.steps.size() == kMostSteps) part.unsupported("too many pre-tokenizers");
    if (found.byte_level || found.metaspace) {
      // Later pre-tokenizers would see the text in the alphabet of this one.
      part.unsupported("the pre-tokenizer '{}' after the last one", type);
    }
    if (type == "Split") {
      found.steps.push_back(read_split(part));
    } else if (type == "Digits") {
      part.allow_keys({"type", "individual_digits"});
      found.steps.push_back({.kind = SplitStep::Kind::kNumeric,
                             .contiguous = !part.boolean("individual_digits", false)});
    } else if (type == "ByteLevel") {
      part.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
      if (part.boolean("add_prefix_space", true))
        part["add_prefix_space"].unsupported("a space before every text is not supported");
      if (part.boolean("use_regex", true)) found.steps.push_back({.pattern = kByteLevelPattern});
      found.byte_level = true;
    } else if (type == "Metaspace" && found.steps.empty()) {
      found.metaspace = read_metaspace(part);
      if (part.boolean("split", true)) part.unsupported("\"split\" is not supported");
    } else {
      refuse(part, "pre-tokenizer");
    }
  }
  return found;
}

void check_byte_level_decoder(const JsonPlace& root) {
  const auto parts = parts_of(root.find("decoder"), "decoders");
  if (parts.empty()) throw UnsupportedError(root.file() + ": decoder: is missing");
  for (const JsonPlace& part : parts) {
    if (type_of(part) != "ByteLevel" || parts.size() > 1) refuse(part, "decoder");
    part.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  }
}

// Checks the decoder: U+2581 becomes a space, byte tokens become their bytes, and the space that
// was added before the text is removed.
void check_sentence_piece_decoder(const JsonPlace& root, bool has_prefix) {
  const auto parts = parts_of(root.find("decoder"), "decoders");
  bool replaces = false, strips = false;
  for (const JsonPlace& part : parts) {
    const std::string_view type = type_of(part);
    if (type == "Replace") {
      expect_replacement(part, kSpaceMark, " ");
      replaces = true;
    } else if (type == "ByteFallback" || type == "Fuse") {
      part.allow_keys({"type"});
    } else if (type == "Strip") {
      part.allow_keys({"type", "content", "start", "stop"});
      expect(part, "content", " ");
      if (part["start"].integer() != 1 || part["stop"].integer() != 0)
        part.unsupported("only one space at the start is supported");
      strips = true;
    } else if (type == "Metaspace") {
      replaces = true;
      strips = read_metaspace(part) != SpacePrefix::kNone;
    } else {
      refuse(part, "decoder");
    }
  }
  const std::string where = root.file() + ": decoder: ";
  if (!replaces) throw UnsupportedError(where + "does not turn U+2581 into a space");
  if (strips != has_prefix) {
    throw UnsupportedError(where + (has_prefix ? "keeps the space that was added before the text"
                                               : "removes a space that was not added"));
  }
}

}  // namespace

void read_tokenizer_pipeline(const JsonPlace& root, TokenizerSpec& spec) {
  const Normalizer normalizer = read_normalizer(root);
  PreTokenization cuts = read_pre_tokenizer(root);
  if (cuts.byte_level) {
    if (normalizer.prepends || normalizer.replaces)
      root["normalizer"].unsupported("changes spaces before the pre-tokenizer 'ByteLevel'");
    spec.normalize_nfc = normalizer.nfc;
    if (const auto scanner = find_scanner(cuts.steps)) {
      spec.pre_tokenizer = *scanner;
    } else {
      spec.splits = std::move(cuts.steps);
    }
    return check_byte_level_decoder(root);
  }
  spec.kind = TokenizerKind::kSentencePieceBpe;
  if (!cuts.steps.empty())
    root["pre_tokenizer"].unsupported("without 'ByteLevel' is not supported");
  if (normalizer.nfc) root["normalizer"].unsupported("NFC without 'ByteLevel' is not supported");
  if (cuts.metaspace && !normalizer.replaces && !normalizer.prepends) {
    spec.space_prefix = *cuts.metaspace;
    spec.normalizes_spaces = false;
  } else if (!cuts.metaspace && normalizer.replaces) {
    spec.space_prefix = normalizer.prepends ? SpacePrefix::kEveryPart : SpacePrefix::kNone;
  } else {
    throw UnsupportedError(root.file() +
                           ": normalizer and pre_tokenizer: neither byte-level BPE nor "
                           "SentencePiece's treatment of spaces");
  }
  check_sentence_piece_decoder(root, spec.space_prefix != SpacePrefix::kNone);
}

namespace {

// TemplateProcessing: at most one token before and one after the text "A". Its name and its id must
// agree with the vocabulary. "pair" is not used.
void read_template(const JsonPlace& part, TokenizerSpec& spec) {
  part.allow_keys({"type", "single", "pair", "special_tokens"});
  bool text_seen = false;
  for (const JsonPlace& item : part["single"].elements()) {
    item.allow_keys({"SpecialToken", "Sequence"});
    if (const auto sequence = item.find("Sequence")) {
      if (text_seen || (*sequence)["id"].string() != "A") item.unsupported("is a second text");
      text_seen = true;
      continue;
    }
    const std::string name((item["SpecialToken"])["id"].string());
    std::optional<TokenId>& place = text_seen ? spec.eos : spec.bos;
    if (place) item.unsupported("more than one token on one side of the text");
    const JsonPlace token = part["special_tokens"][name];
    token.allow_keys({"id", "ids", "tokens"});
    const auto ids = token["ids"].elements();
    if (ids.size() != 1) token.unsupported("represents more than one token");
    const auto id = ids.front().integer();
    if (id < 0 || id >= std::ssize(spec.pieces) || spec.pieces[static_cast<size_t>(id)] != name)
      ids.front().fail("{} is not the id of '{}'", id, name);
    place = static_cast<TokenId>(id);
  }
  if (!text_seen) part["single"].fail("does not contain the text");
}

}  // namespace

void read_post_processor(const JsonPlace& root, TokenizerSpec& spec) {
  bool seen = false;
  for (const JsonPlace& part : parts_of(root.find("post_processor"), "processors")) {
    const std::string_view type = type_of(part);
    if (type == "ByteLevel") {  // changes offsets only
      part.allow_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    } else if (type == "TemplateProcessing" && !seen) {
      seen = true;
      read_template(part, spec);
    } else {
      refuse(part, "post-processor");
    }
  }
}

}  // namespace limpid
