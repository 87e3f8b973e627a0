// NegativeLogLikelihoodLoss (ops/nn/losses.cc).

#include "c/writer.h"
#include "op/op_def.h"

namespace treadle::c {

namespace {

void write_loss(const Call& call, std::string&) {
  Writer& w = call.writer;
  Text& text = w.text();
  const Dims scores = call.dims(0);
  const std::string_view reduction = call.node.attributes.get_string("reduction", "mean");
  const bool none = reduction == "none", mean = reduction == "mean";
  int64_t inner = 1;
  for (size_t d = 2; d < scores.size(); ++d) inner *= scores[d];
  const int64_t classes = scores[1], labels = scores[0] * inner;
  const ElementType type = call.type(0);
  const auto narrow = [&](const char* loss) { return w.converted(ElementType::kDouble, type, loss); };
  text.open("");
  if (!none) text.line("double sum = 0;");
  if (mean) text.line("double total = 0;");
  text.open("for (ptrdiff_t i = 0; i < {}; ++i)", labels);
  text.line("const int64_t label = {}[i];", call.in(1));
  text.line("double loss = 0;");
  const bool ignores = call.node.attributes.has("ignore_index");
  if (ignores) text.open("if (label != {})", literal(call.node.attributes.get_int("ignore_index", 0)));
  text.line("if (label < 0 || label >= {}) return {};", classes, w.error("INDEX_OUT_OF_RANGE"));
  const std::string at = inner == 1 ? fmt::format("i * {} + (ptrdiff_t)label", classes)
                                    : fmt::format("(i / {0} * {1} + (ptrdiff_t)label) * {0} + i % {0}", inner, classes);
  const auto wide = [&](const std::string& x) {
    const std::string value = w.converted(type, ElementType::kDouble, x);
    return value == x ? x : value;
  };
  const std::string score = wide(fmt::format("{}[{}]", call.in(0), at));
  if (call.has_input(2)) {
    text.line("const double weight = {};", wide(fmt::format("{}[label]", call.in(2))));
    text.line("loss = -weight * {};", score);
    if (mean) text.line("total += weight;");
  } else {
    text.line("loss = -{};", score);
    if (mean) text.line("total += 1;");
  }
  if (ignores) text.close();
  if (none) {
    text.line("{}[i] = {};", call.out(), narrow("loss"));
  } else {
    text.line("sum += loss;");
  }
  text.close();
  if (!none) text.line("{}[0] = {};", call.out(), narrow(mean ? "sum / total" : "sum"));
  text.close();
}

constexpr OperatorRow kRows[] = {{"NegativeLogLikelihoodLoss", "", write_loss}};

}  // namespace

std::span<const OperatorRow> loss_operators() {
  return kRows;
}

}  // namespace treadle::c
