#include "ops/math/einsum_equation.h"

#include <algorithm>

namespace treadle::einsum {

namespace {

Status bad_equation(std::string_view text, std::string_view why) {
  return error(Code::kInvalidModel, "equation '{}': {}", text, why);
}

int label_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  return -1;
}

// Parses the labels of one term; `ellipsis` is the number of dimensions for "...".
Status parse_term(std::string_view text, std::string_view term, int64_t ellipsis, Labels& labels) {
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (term[i] == '.') {
      if (seen || term.substr(i, 3) != "...") return bad_equation(text, "expected at most one '...' per term");
      seen = true;
      i += 2;
      for (int64_t d = ellipsis; d-- > 0;) labels.push_back(static_cast<Label>(kEllipsis + d));
      continue;
    }
    const int label = label_of(term[i]);
    if (label < 0) return bad_equation(text, "expected letters, ',', '...' and '->'");
    labels.push_back(static_cast<Label>(label));
  }
  return {};
}

int64_t letters(std::string_view term) {
  return std::count_if(term.begin(), term.end(), [](char c) { return label_of(c) >= 0; });
}

void implicit_output(Equation& equation, int64_t ellipsis) {
  int uses[kLabels] = {};
  for (const Labels& labels : equation.inputs) {
    for (Label l : labels) ++uses[l];
  }
  for (int64_t d = ellipsis; d-- > 0;) equation.output.push_back(static_cast<Label>(kEllipsis + d));
  for (Label l = 0; l < kEllipsis; ++l) {
    if (uses[l] == 1) equation.output.push_back(l);
  }
}

Status check_output(std::string_view text, const Equation& equation) {
  bool known[kLabels] = {}, used[kLabels] = {};
  for (const Labels& labels : equation.inputs) {
    for (Label l : labels) known[l] = true;
  }
  for (Label l : equation.output) {
    if (!known[l]) return bad_equation(text, "a label of the output occurs in no input");
    if (used[l]) return bad_equation(text, "a label occurs twice in the output");
    used[l] = true;
  }
  return {};
}

}  // namespace

Result<Equation> parse(std::string_view text, std::span<const int64_t> ranks) {
  const size_t arrow = text.find("->");
  std::string_view left = text.substr(0, arrow);
  Equation equation;
  int64_t widest = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const size_t comma = left.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == ranks.size())) {
      return error(Code::kInvalidModel, "equation '{}' is expected to have {} terms, one for each input", text,
                   ranks.size());
    }
    const std::string_view term = left.substr(0, comma);
    const int64_t ellipsis = ranks[i] - letters(term);
    const bool has_ellipsis = term.find('.') != std::string_view::npos;
    if (ellipsis < 0 || (ellipsis > 0 && !has_ellipsis) || ellipsis >= kLabels - kEllipsis) {
      return error(Code::kInvalidArgument,
                   "term '{}' of the equation names {} axes, expected one for each axis of input {}: {}", term,
                   letters(term), i, ranks[i]);
    }
    widest = std::max(widest, ellipsis);
    TREADLE_TRY(parse_term(text, term, ellipsis, equation.inputs.emplace_back()));
    left = comma == std::string_view::npos ? std::string_view() : left.substr(comma + 1);
  }
  if (arrow == std::string_view::npos) {
    implicit_output(equation, widest);
  } else {
    TREADLE_TRY(parse_term(text, text.substr(arrow + 2), widest, equation.output));
  }
  TREADLE_TRY(check_output(text, equation));
  return equation;
}

}  // namespace treadle::einsum
