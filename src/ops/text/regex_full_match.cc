// RegexFullMatch: whether each whole string matches a pattern in RE2's syntax.

#include "kernels/costs.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/pieces.h"
#include "ops/costs.h"
#include "ops/text/pattern.h"

namespace treadle::text {

namespace {

Result<Pattern> parse_pattern(const ir::NodeInfo& node) {
  return read_pattern(node.attributes.get_string("pattern"), "pattern");
}

Status infer_regex_full_match(InferContext& ctx) {
  if (const Shape* x = ctx.shape(0)) {
    ctx.set_output(0, ElementType::kBool, *x);
  } else {
    ctx.set_output(0, ElementType::kBool);
  }
  return {};
}

Status compute_regex_full_match(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const Pattern& pattern = ctx.node.parsed_as<Pattern>();
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kBool, x.dims()));
  auto* matches = y->mutable_data<bool>();
  StopPoll stop;
  for (const String& text : x.span<String>()) {
    *matches++ = re2::RE2::FullMatch(std::string_view(text), *pattern);
    if (stop.after(costs::kTextNs + costs::kRegexCharacterNs * static_cast<double>(text.size()))) return stopped();
  }
  return {};
}

}  // namespace

}  // namespace treadle::text

TREADLE_OP(RegexFullMatch, "") {
  op.since(20)
      .in("X", "T1")
      .out("Y", "T2")
      .optional("pattern", ir::AttributeKind::kString)
      .type("T1", tensors(ElementType::kString))
      .type("T2", tensors(ElementType::kBool));
  op.parse<text::parse_pattern>()
      .infer(text::infer_regex_full_match)
      .compute(text::compute_regex_full_match)
      .axes(axes::element_by_element, axes::unchanged);
}
