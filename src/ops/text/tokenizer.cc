// Tokenizer: the tokens of every text along one more axis, optionally between two marks, filled up to the longest row.

#include <algorithm>
#include <string>
#include <vector>

#include "op/op_def.h"
#include "op/pieces.h"
#include "ops/costs.h"
#include "ops/text/pattern.h"
#include "ops/text/unicode.h"

namespace treadle::text {

namespace {

enum class Mode : uint8_t { kCharacters, kSeparators, kTokens };

struct TokenRules {
  Mode mode = Mode::kCharacters;
  std::vector<Pattern> patterns;  // one or more of separators; or a single one of tokens
  int64_t least = 1;              // characters of a token
};

Result<TokenRules> parse_rules(const ir::NodeInfo& node) {
  TokenRules rules;
  const auto separators = node.attributes.get_strings("separators");
  const std::string_view token = node.attributes.get_string("tokenexp");
  if (separators.empty() == token.empty()) {
    return error(Code::kInvalidModel, "expected one of the attributes separators and tokenexp, found {}",
                 token.empty() ? "neither" : "both");
  }
  rules.least = node.attributes.get_int("mincharnum");
  if (rules.least < 1) return error(Code::kInvalidModel, "attribute mincharnum is {}, expected 1 or more", rules.least);
  if (token == "." || (separators.size() == 1 && separators[0].empty())) {
    if (rules.least == 1) return rules;
    return error(Code::kInvalidModel, "attribute mincharnum is {}, expected 1, since every character is a token",
                 rules.least);
  }
  rules.mode = token.empty() ? Mode::kSeparators : Mode::kTokens;
  if (!token.empty()) {
    TREADLE_ASSIGN(auto pattern, read_pattern(token, "tokenexp", true));
    rules.patterns.push_back(std::move(pattern));
  }
  for (const std::string& separator : separators) {
    if (separator.empty())
      return error(Code::kInvalidModel, "attribute separators holds '' beside others, expected it alone");
    TREADLE_ASSIGN(auto pattern, read_pattern(separator, "separators", true));
    rules.patterns.push_back(std::move(pattern));
  }
  return rules;
}

// Without any text there is no axis of tokens: X [0] gives [0], and [N,0] gives [N,0].
Status infer_tokenizer(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ElementType::kString), Status();
  if (x->size() != 1 && x->size() != 2) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [C] or [N,C]", to_string(*x));
  }
  Shape out = *x;
  const bool empty = std::any_of(x->begin(), x->end(), [](const Dim& d) { return d.is_known(0); });
  if (empty) {
    out.back() = Dim(int64_t{0});
  } else {
    out.push_back(Dim::unknown());
  }
  ctx.set_output(0, ElementType::kString, std::move(out));
  return {};
}

using Tokens = CountedVector<std::string_view>;

int64_t characters_in(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); text.remove_prefix(leading_character(text))) ++count;
  return count;
}

// Where a search continues behind an empty match, or one that is no token: a character later.
size_t behind_character(std::string_view text, size_t at) {
  return at < text.size() ? at + leading_character(text.substr(at)) : text.size() + 1;
}

// Splits one text into tokens. If the work is to stop, the text is the only token.
class Splitter {
 public:
  Splitter(const TokenRules& rules, StopPoll& stop) : rules_(rules), stop_(stop) {}

  void split(std::string_view text, Tokens& tokens) const {
    switch (rules_.mode) {
      case Mode::kCharacters:
        return split_characters(text, tokens);
      case Mode::kSeparators:
        return split_at_separators(text, tokens);
      case Mode::kTokens:
        return find_tokens(text, tokens);
    }
  }

 private:
  bool stops(std::string_view text) const {
    return stop_.after(costs::kTokenizerTokenNs + costs::kTokenizerCharacterNs * static_cast<double>(text.size()));
  }
  // The next match at `from` or behind; its data is null if there is none.
  static std::string_view match(const re2::RE2& pattern, std::string_view text, size_t from) {
    if (from > text.size()) return {};
    re2::StringPiece found;
    const re2::StringPiece all(text.data(), text.size());
    if (!pattern.Match(all, from, text.size(), re2::RE2::UNANCHORED, &found, 1)) return {};
    return {found.data(), found.size()};
  }
  void add(std::string_view token, Tokens& tokens) const {
    if (characters_in(token) >= rules_.least) tokens.push_back(token);
  }

  void split_characters(std::string_view text, Tokens& tokens) const {
    while (!text.empty() && !stop_.after(costs::kTokenizerCharacterNs)) {
      const size_t bytes = leading_character(text);
      tokens.push_back(text.substr(0, bytes));
      text.remove_prefix(bytes);
    }
  }

  // Each separator splits the parts that the ones before left.
  void split_at_separators(std::string_view text, Tokens& tokens) const {
    Tokens parts{text};
    for (const auto& pattern : rules_.patterns) {
      Tokens smaller;
      for (const std::string_view part : parts) split_at(*pattern, part, smaller);
      parts.swap(smaller);
    }
    tokens.insert(tokens.end(), parts.begin(), parts.end());
  }

  void split_at(const re2::RE2& pattern, std::string_view text, Tokens& parts) const {
    size_t from = 0;
    while (!stops(text)) {
      const std::string_view found = match(pattern, text, from);
      if (!found.data()) break;
      const auto at = static_cast<size_t>(found.data() - text.data());
      add(text.substr(from, at - from), parts);
      from = found.empty() ? behind_character(text, at) : at + found.size();
    }
    if (from < text.size()) add(text.substr(from), parts);
  }

  void find_tokens(std::string_view text, Tokens& tokens) const {
    for (size_t from = 0; !stops(text);) {
      const std::string_view found = match(*rules_.patterns[0], text, from);
      if (!found.data()) return;
      const auto at = static_cast<size_t>(found.data() - text.data());
      const bool is_token = characters_in(found) >= rules_.least;
      if (is_token) tokens.push_back(found);
      from = is_token ? at + found.size() : behind_character(text, at);
    }
  }

  const TokenRules& rules_;
  StopPoll& stop_;
};

struct Rows {
  Tokens tokens;  // of all texts, one after the other
  CountedVector<int64_t> counts;
  int64_t longest = 0;
};

Status write_rows(ComputeContext& ctx, const Rows& rows, StopPoll& stop) {
  const std::string_view pad = ctx.attributes().get_string("pad_value");
  const bool marked = ctx.attributes().get_int("mark") != 0 && rows.longest > 0;
  const int64_t length = rows.longest + (marked ? 2 : 0);
  Dims dims = ctx.tensor(0).dims();
  dims.push_back(length);
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kString, std::move(dims)));
  const std::string_view* token = rows.tokens.data();
  auto* to = y->mutable_data<String>();
  const auto put = [&](std::string_view text) {
    *to++ = text;
    return stop.after(text_ns(text));
  };
  for (const int64_t count : rows.counts) {
    bool stops = marked && put("\x02");
    for (int64_t i = 0; i < count; ++i) stops |= put(*token++);
    stops |= marked && put("\x03");
    for (int64_t i = count; i < rows.longest; ++i) stops |= put(pad);
    if (stops) return stopped();
  }
  return {};
}

Status compute_tokenizer(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  if (x.element_count() == 0) {
    Dims dims = x.dims();
    dims.back() = 0;
    return ctx.allocate(0, ElementType::kString, std::move(dims)).status();
  }
  StopPoll stop;
  const Splitter splitter(ctx.node.parsed_as<TokenRules>(), stop);
  Rows rows;
  for (const String& text : x.span<String>()) {
    const size_t before = rows.tokens.size();
    splitter.split(text, rows.tokens);
    if (stop.after(costs::kTokenizerTokenNs)) return stopped();
    rows.counts.push_back(static_cast<int64_t>(rows.tokens.size() - before));
    rows.longest = std::max(rows.longest, rows.counts.back());
  }
  return write_rows(ctx, rows, stop);
}

}  // namespace

}  // namespace treadle::text

TREADLE_OP(Tokenizer, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .required("mark", ir::AttributeKind::kInt)
      .required("mincharnum", ir::AttributeKind::kInt)
      .required("pad_value", ir::AttributeKind::kString)
      .optional("separators", ir::AttributeKind::kStrings)
      .optional("tokenexp", ir::AttributeKind::kString)
      .type("T", types::kStrings);
  op.parse<text::parse_rules>()
      .infer(text::infer_tokenizer)
      .compute(text::compute_tokenizer)
      .no_axes("the text of most tokens decides how long its result is");
}
