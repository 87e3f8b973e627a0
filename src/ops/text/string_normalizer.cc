// StringNormalizer: removes stop words, and changes the rest to lower or upper case. The locale does not matter: the
// mappings are Unicode's own.

#include <string>
#include <unordered_set>

#include "kernels/costs.h"
#include "op/op_def.h"
#include "op/pieces.h"
#include "ops/costs.h"
#include "ops/text/unicode.h"

namespace treadle::text {

namespace {

enum class CaseChange : uint8_t { kNone, kLower, kUpper };

struct Normalization {
  std::unordered_set<String> stop_words;  // folded, unless case_sensitive
  bool case_sensitive = false;
  CaseChange change = CaseChange::kNone;

  bool keeps(const String& word) const {
    if (stop_words.empty()) return true;
    return !stop_words.contains(case_sensitive ? word : fold_case(word));
  }
  String apply(const String& word) const {
    return change == CaseChange::kLower ? to_lower(word) : change == CaseChange::kUpper ? to_upper(word) : word;
  }
};

Result<Normalization> parse_normalization(const ir::NodeInfo& node) {
  const std::string_view change = node.attributes.get_string("case_change_action", "NONE");
  Normalization n;
  if (change == "LOWER") {
    n.change = CaseChange::kLower;
  } else if (change == "UPPER") {
    n.change = CaseChange::kUpper;
  } else if (change != "NONE") {
    return error(Code::kInvalidModel, "attribute case_change_action is '{}', expected LOWER, UPPER or NONE", change);
  }
  n.case_sensitive = node.attributes.get_int("is_case_sensitive", 0) != 0;
  for (const std::string& word : node.attributes.get_strings("stopwords")) {
    n.stop_words.insert(n.case_sensitive ? String(word) : fold_case(word));
  }
  return n;
}

Status check_shape(const Shape& x) {
  if (x.size() == 1) return {};
  if (x.size() == 2 && (!x[0].is_known() || x[0].value() == 1)) return {};
  return error(Code::kInvalidArgument, "X has shape {}, expected [C] or [1,C]", to_string(x));
}

Status infer_string_normalizer(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ElementType::kString), Status();
  TREADLE_TRY(check_shape(*x));
  Shape y;
  if (x->size() == 2) y.emplace_back(int64_t{1});
  y.push_back(Dim::unknown());
  ctx.set_output(0, ElementType::kString, std::move(y));
  return {};
}

Status compute_string_normalizer(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  TREADLE_TRY(check_shape(to_shape(x.dims())));
  const Normalization& normalization = ctx.node.parsed_as<Normalization>();
  CountedVector<const String*> kept;
  StopPoll stop;
  const auto goes_on = [&](const String& word) {
    return !stop.after(costs::kTextNs + costs::kCaseCharacterNs * static_cast<double>(word.size()));
  };
  for (const String& word : x.span<String>()) {
    if (normalization.keeps(word)) kept.push_back(&word);
    if (!goes_on(word)) return stopped();
  }
  Dims dims = x.dims();
  dims.back() = kept.empty() ? 1 : static_cast<int64_t>(kept.size());  // without any word: one empty string
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kString, std::move(dims)));
  for (size_t i = 0; i < kept.size(); ++i) {
    y->mutable_data<String>()[i] = normalization.apply(*kept[i]);
    if (!goes_on(*kept[i])) return stopped();
  }
  return {};
}

}  // namespace

}  // namespace treadle::text

TREADLE_OP(StringNormalizer, "") {
  op.since(10)
      .in("X", "tensor(string)")
      .out("Y", "tensor(string)")
      .attr("case_change_action", "NONE")
      .attr("is_case_sensitive", 0)
      .optional("locale", ir::AttributeKind::kString)
      .optional("stopwords", ir::AttributeKind::kStrings);
  op.parse<text::parse_normalization>()
      .infer(text::infer_string_normalizer)
      .compute(text::compute_string_normalizer)
      .no_axes("how many texts stay depends on all of them");
}
