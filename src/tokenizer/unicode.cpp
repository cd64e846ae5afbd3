#include "tokenizer/unicode.h"

namespace limpid::unicode {

std::optional<Properties> category_named(std::string_view name) {
  struct Named {
    std::string_view name, long_name;
    Properties properties;
  };
  static constexpr Named kNames[] = {
      {"L", "Letter", kLetter},
      {"M", "Mark", kMark},
      {"N", "Number", kNumber},
      {"P", "Punctuation", kPunctuation},
      {"S", "Symbol", kSymbol},
      {"Z", "Separator", bit(kZs) | bit(kZl) | bit(kZp)},
      {"Lu", "Uppercase_Letter", bit(kLu)},
      {"Ll", "Lowercase_Letter", bit(kLl)},
      {"Lt", "Titlecase_Letter", bit(kLt)},
      {"Lm", "Modifier_Letter", bit(kLm)},
      {"Lo", "Other_Letter", bit(kLo)},
      {"Mn", "Nonspacing_Mark", bit(kMn)},
      {"Mc", "Spacing_Mark", bit(kMc)},
      {"Me", "Enclosing_Mark", bit(kMe)},
      {"Nd", "Decimal_Number", bit(kNd)},
      {"Nl", "Letter_Number", bit(kNl)},
      {"No", "Other_Number", bit(kNo)},
      {"Pc", "Connector_Punctuation", bit(kPc)},
      {"Pd", "Dash_Punctuation", bit(kPd)},
      {"Ps", "Open_Punctuation", bit(kPs)},
      {"Pe", "Close_Punctuation", bit(kPe)},
      {"Pi", "Initial_Punctuation", bit(kPi)},
      {"Pf", "Final_Punctuation", bit(kPf)},
      {"Po", "Other_Punctuation", bit(kPo)},
      {"Sm", "Math_Symbol", bit(kSm)},
      {"Sc", "Currency_Symbol", bit(kSc)},
      {"Sk", "Modifier_Symbol", bit(kSk)},
      {"So", "Other_Symbol", bit(kSo)},
      {"Zs", "Space_Separator", bit(kZs)},
      {"Zl", "Line_Separator", bit(kZl)},
      {"Zp", "Paragraph_Separator", bit(kZp)},
      {"Cc", "Control", bit(kCc)},
      {"Cf", "Format", bit(kCf)},
      {"Co", "Private_Use", bit(kCo)},
  };
  for (const Named& known : kNames) {
    if (known.name == name || known.long_name == name) return known.properties;
  }
  return std::nullopt;
}

}  // namespace limpid::unicode
