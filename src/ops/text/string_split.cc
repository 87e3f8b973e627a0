// StringSplit: the parts of every string along one more axis, filled up with empty strings, and their number.

#include <algorithm>
#include <string>
#include <vector>

#include "op/op_def.h"
#include "op/pieces.h"
#include "ops/costs.h"
#include "ops/text/unicode.h"

namespace treadle::text {

namespace {

Status infer_string_split(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (!x) {
    ctx.set_output(0, ElementType::kString);
    ctx.set_output(1, ElementType::kInt64);
    return {};
  }
  Shape parts = *x;
  parts.push_back(Dim::unknown());
  ctx.set_output(0, ElementType::kString, std::move(parts));
  ctx.set_output(1, ElementType::kInt64, *x);
  return {};
}

using Parts = CountedVector<std::string_view>;

// If the work is to stop, the rest of a text is not split.
void split_at_spaces(std::string_view text, size_t max_splits, Parts& parts, StopPoll& stop) {
  const auto skip_spaces = [&] {
    while (const size_t length = leading_space(text)) text.remove_prefix(length);
  };
  skip_spaces();
  for (size_t splits = 0; !text.empty(); ++splits) {
    if (splits == max_splits || stop.after(costs::kSplitTextPartNs)) {
      parts.push_back(text);
      return;
    }
    size_t end = 0;
    while (end < text.size() && leading_space(text.substr(end)) == 0 && !stop.after(costs::kSplitCharacterNs)) {
      end += leading_character(text.substr(end));
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
    skip_spaces();
  }
}

void split_at(std::string_view text, std::string_view delimiter, size_t max_splits, Parts& parts, StopPoll& stop) {
  for (size_t splits = 0; splits < max_splits; ++splits) {
    const size_t at = text.find(delimiter);
    if (at == std::string_view::npos || stop.after(costs::kSplitTextPartNs + kByteNs * static_cast<double>(at))) break;
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + delimiter.size());
  }
  parts.push_back(text);
}

Status compute_string_split(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const std::string_view delimiter = ctx.attributes().get_string("delimiter");
  const int64_t limit = ctx.attributes().get_int("maxsplit", -1);
  const size_t max_splits = limit < 0 ? SIZE_MAX : static_cast<size_t>(limit);
  TREADLE_ASSIGN(Tensor counts, Tensor::allocate(ElementType::kInt64, x.dims()));
  Parts parts;  // of all strings, one after the other
  int64_t most = 0;
  StopPoll stop;
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const size_t before = parts.size();
    if (delimiter.empty()) {
      split_at_spaces(x.data<String>()[i], max_splits, parts, stop);
    } else {
      split_at(x.data<String>()[i], delimiter, max_splits, parts, stop);
    }
    if (stop.after(costs::kSplitTextPartNs)) return stopped();
    const auto count = static_cast<int64_t>(parts.size() - before);
    counts.mutable_data<int64_t>()[i] = count;
    most = std::max(most, count);
  }
  Dims dims = x.dims();
  dims.push_back(most);
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kString, std::move(dims)));
  const std::string_view* part = parts.data();
  for (int64_t i = 0; i < x.element_count(); ++i) {
    String* row = y->mutable_data<String>() + i * most;
    for (int64_t k = 0; k < counts.data<int64_t>()[i]; ++k) {
      row[k] = *part++;
      if (stop.after(text_ns(row[k]))) return stopped();
    }
  }
  if (ctx.outputs.size() > 1) ctx.outputs[1] = AnyValue(std::move(counts));
  return {};
}

}  // namespace

}  // namespace treadle::text

TREADLE_OP(StringSplit, "") {
  op.since(20)
      .in("X", "T1")
      .out("Y", "T2")
      .out("Z", "T3")
      .optional("delimiter", ir::AttributeKind::kString)
      .optional("maxsplit", ir::AttributeKind::kInt)
      .type("T1", tensors(ElementType::kString))
      .type("T2", tensors(ElementType::kString))
      .type("T3", tensors(ElementType::kInt64));
  op.infer(text::infer_string_split)
      .compute(text::compute_string_split)
      .no_axes("the text of most parts decides how long its result is");
}
