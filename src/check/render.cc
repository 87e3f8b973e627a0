#include "check/render.h"

#include <algorithm>

#include "base/harmless.h"
#include "base/json.h"

namespace treadle {

namespace {

constexpr std::string_view kRed = "\x1b[1;31m", kYellow = "\x1b[1;33m", kGreen = "\x1b[1;32m", kBold = "\x1b[1m",
                           kDim = "\x1b[2m", kPlain = "\x1b[0m";

// A line, and the marks under it.
struct Excerpt {
  std::string line, space, mark;
};

// Tabs stay tabs in both lines. A long line is cut around the position.
Excerpt excerpt_of(std::string_view source, size_t offset, size_t marked) {
  constexpr size_t kBefore = 80, kAfter = 40;
  size_t begin = offset, end = offset;
  while (begin > 0 && source[begin - 1] != '\n' && offset - begin < kBefore) --begin;
  while (end < source.size() && source[end] != '\n' && end - offset < kAfter + marked) ++end;
  const size_t length = std::max<size_t>(1, std::min(marked, end - offset));
  Excerpt excerpt{std::string(source.substr(begin, end - begin)), {}, "^" + std::string(length - 1, '~')};
  for (const char c : source.substr(begin, offset - begin)) {
    if ((c & 0xc0) != 0x80) excerpt.space += c == '\t' ? '\t' : ' ';  // one per character
  }
  const auto obeyed = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; };
  std::ranges::replace_if(excerpt.line, obeyed, ' ');
  return excerpt;
}

class TextRenderer {
 public:
  TextRenderer(const Report& report, const RenderOptions& options)
      : report_(report),
        options_(options),
        lines_(options.source),
        file_(options.file.empty() ? report.file : options.file) {
    if (file_.empty()) file_ = "model";
  }

  std::string run() {
    for (const Diagnostic& d : report_.diagnostics) add(d);
    const size_t shown = report_.diagnostics.size(), all = report_.errors + report_.warnings;
    if (all > shown) text_ += fmt::format("... and {} more\n", all - shown);
    return std::move(text_);
  }

 private:
  void paint(std::string_view colour, std::string_view text) {
    if (options_.colour) text_ += colour;
    text_ += text;
    if (options_.colour) text_ += kPlain;
  }

  void add(const Diagnostic& d) {
    const bool is_error = d.severity() == Severity::kError;
    const bool has_line = d.offset < options_.source.size();
    paint(kBold, (has_line ? place(d.offset) : std::string(file_)) + ": ");
    paint(is_error ? kRed : kYellow, is_error ? "error: " : "warning: ");
    if (!d.path.empty()) text_ += harmless(d.op.empty() ? d.path + ": " : fmt::format("{} ({}): ", d.path, d.op));
    text_ += harmless(d.sentence());
    paint(kDim, fmt::format(" [{}]", info(d.problem).name));
    text_ += '\n';
    if (has_line) add_line(d.offset, d.length);
    if (!d.origin.empty()) add_origin(d);
    if (!d.hint.empty()) {
      text_ += "    ";
      paint(kGreen, "hint: ");
      text_ += harmless(d.hint) + "\n";
    }
  }

  void add_origin(const Diagnostic& d) {
    text_ += "    ";
    if (d.origin_offset < options_.source.size()) paint(kBold, place(d.origin_offset) + ": ");
    text_ += harmless(d.origin) + "\n";
    if (d.origin_offset < options_.source.size()) add_line(d.origin_offset, d.origin_length);
  }

  std::string place(size_t offset) const {
    const Position at = lines_.position_of(offset);
    return fmt::format("{}:{}:{}", file_, at.line, at.column);
  }

  void add_line(size_t offset, size_t length) {
    const Excerpt excerpt = excerpt_of(options_.source, offset, length);
    text_ += fmt::format("    {}\n    {}", excerpt.line, excerpt.space);
    paint(kGreen, excerpt.mark);
    text_ += '\n';
  }

  const Report& report_;
  const RenderOptions& options_;
  Lines lines_;
  std::string_view file_;
  std::string text_;
};

std::string json_problem(const Diagnostic& d, const RenderOptions& options, const Lines& lines) {
  std::string json = fmt::format("{{\"code\":{},\"severity\":\"{}\"", json_text(info(d.problem).name),
                                 d.severity() == Severity::kError ? "error" : "warning");
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!value.empty()) json += fmt::format(",\"{}\":{}", key, json_text(value));
  };
  add("path", d.path);
  add("operator", d.op);
  add("message", d.message);
  add("expected", d.expected);
  add("found", d.found);
  add("origin", d.origin);
  add("hint", d.hint);
  const auto add_place = [&](std::string_view prefix, size_t offset) {
    if (offset != kNoOffset) json += fmt::format(",\"{}byte\":{}", prefix, offset);
    if (offset >= options.source.size()) return;
    const Position at = lines.position_of(offset);
    json += fmt::format(",\"{0}line\":{1},\"{0}column\":{2}", prefix, at.line, at.column);
  };
  add_place("", d.offset);
  if (d.offset < options.source.size()) {
    const Excerpt excerpt = excerpt_of(options.source, d.offset, d.length);
    add("excerpt", excerpt.line + "\n" + excerpt.space + excerpt.mark);
  }
  add_place("origin_", d.origin_offset);
  return json + "}";
}

}  // namespace

std::string render_text(const Report& report, const RenderOptions& options) {
  return TextRenderer(report, options).run();
}

std::string render_json(const Report& report, const RenderOptions& options) {
  std::string json = fmt::format("{{\"file\":{},\"ok\":{},\"errors\":{},\"warnings\":{},\"problems\":[",
                                 json_text(options.file.empty() ? std::string_view(report.file) : options.file),
                                 report.ok(), report.errors, report.warnings);
  const Lines lines(options.source);
  const std::string runs = report.refusal
                               ? fmt::format(",\"runs\":{},\"refusal\":{},\"outlook\":{}", report.refusal->empty(),
                                             json_text(*report.refusal), json_text(report.outlook))
                               : std::string();
  for (size_t i = 0; i < report.diagnostics.size(); ++i) {
    if (i > 0) json += ",";
    json += json_problem(report.diagnostics[i], options, lines);
  }
  return json + "]" + runs + "}";
}

Lines::Lines(std::string_view source) : source_(source), begins_{0} {
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\n') begins_.push_back(i + 1);
  }
}

Position Lines::position_of(size_t offset) const {
  const auto line = std::upper_bound(begins_.begin(), begins_.end(), offset) - 1;
  Position at{static_cast<size_t>(line - begins_.begin()) + 1, 1};
  for (const char c : source_.substr(*line, offset - *line)) at.column += (c & 0xc0) != 0x80;
  return at;
}

}  // namespace treadle
