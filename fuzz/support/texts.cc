#include "fuzz/support/texts.h"

#include <set>

#include "op/registry.h"

namespace treadle::fuzz {

namespace {

Vocabulary collect() {
  // What operators compare texts with stands in their code, not in their records, unless it is a default.
  std::set<std::string_view> operators, domains = {"", "local"}, attributes,
                                        settings = {"",
                                                    "constant",
                                                    "edge",
                                                    "wrap",
                                                    "SAME_UPPER",
                                                    "SAME_LOWER",
                                                    "VALID",
                                                    "bidirectional",
                                                    "reverse",
                                                    "sum",
                                                    "none",
                                                    "add",
                                                    "mul",
                                                    "min",
                                                    "max",
                                                    "nearest",
                                                    "cubic",
                                                    "pytorch_half_pixel",
                                                    "align_corners",
                                                    "asymmetric",
                                                    "tf_crop_and_resize",
                                                    "floor",
                                                    "ceil",
                                                    "CRD",
                                                    "Relu",
                                                    "Sigmoid",
                                                    "BRANCH_LEQ",
                                                    "LEAF",
                                                    "ij,jk->ik",
                                                    "bij,bjk",
                                                    "...ii->i",
                                                    "\xff",
                                                    "[a-z]+(",
                                                    "UPPER",
                                                    "TFIDF",
                                                    "N",
                                                    "location",
                                                    "offset",
                                                    "length",
                                                    "../x",
                                                    "9223372036854775807"};
  for (const OpDef* op : all_ops()) {
    operators.insert(op->name);
    domains.insert(op->domain);
    for (const OpVersion& version : op->versions) {
      for (const AttributeDef& attribute : version.attributes) {
        attributes.insert(attribute.name);
        if (const auto* text = std::get_if<std::string>(&attribute.default_value.value)) settings.insert(*text);
        if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.default_value.value)) {
          settings.insert(texts->begin(), texts->end());
        }
      }
    }
  }
  const auto listed = [](const auto& set) { return std::vector<std::string_view>(set.begin(), set.end()); };
  return {listed(operators), listed(domains), listed(attributes), listed(settings)};
}

}  // namespace

const Vocabulary& vocabulary() {
  static const Vocabulary* const kVocabulary = new Vocabulary(collect());
  return *kVocabulary;
}

std::span<const std::string_view> text_tokens() {
  static constexpr std::string_view kTokens[] = {"{",
                                                 "}",
                                                 "(",
                                                 ")",
                                                 "[",
                                                 "]",
                                                 "<",
                                                 ">",
                                                 "=",
                                                 "=>",
                                                 ",",
                                                 ":",
                                                 "|",
                                                 "\"",
                                                 "#",
                                                 "...",
                                                 "@",
                                                 "-",
                                                 "0",
                                                 "1",
                                                 "-1",
                                                 "1e9",
                                                 "nan",
                                                 "-inf",
                                                 "float",
                                                 "int64",
                                                 "bool",
                                                 "string",
                                                 "seq",
                                                 "map",
                                                 "tensor",
                                                 "hex",
                                                 "opset_import",
                                                 "ir_version",
                                                 "optional",
                                                 "opaque",
                                                 "sparse_tensor",
                                                 "9223372036854775808",
                                                 "3.5",
                                                 "\\n",
                                                 "\\u0041"};
  return kTokens;
}

std::string_view symbol(Random& random) {
  static constexpr std::string_view kNames[] = {"N", "M", "T", "x", "y", "a", "unk__0", "N+1"};
  return random.pick(kNames);
}

}  // namespace treadle::fuzz
