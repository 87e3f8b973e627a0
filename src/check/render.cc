#include "check/render.h"

#include <algorithm>

#include "check/json.h"

namespace treadle {

namespace {

constexpr std::string_view kRed = "\x1b[1;31m", kYellow = "\x1b[1;33m", kGreen = "\x1b[1;32m", kBold = "\x1b[1m",
                           kDim = "\x1b[2m", kPlain = "\x1b[0m";

// Texts of a model may hold what a terminal obeys; a report shows it instead.
std::string harmless(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result;
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
    const bool has_line = !options_.source.empty() && d.offset < options_.source.size();
    std::string where(file_);
    if (has_line) {
      const Position at = lines_.position_of(d.offset);
      where += fmt::format(":{}:{}", at.line, at.column);
    }
    paint(kBold, where + ": ");
    paint(is_error ? kRed : kYellow, is_error ? "error: " : "warning: ");
    if (!d.path.empty()) text_ += harmless(d.op.empty() ? d.path + ": " : fmt::format("{} ({}): ", d.path, d.op));
    text_ += harmless(d.sentence());
    paint(kDim, fmt::format(" [{}]", info(d.problem).name));
    text_ += '\n';
    if (has_line) add_line(d);
    if (!d.origin.empty()) text_ += fmt::format("    {}\n", harmless(d.origin));
    if (!d.hint.empty()) {
      text_ += "    ";
      paint(kGreen, "hint: ");
      text_ += harmless(d.hint) + "\n";
    }
  }

  // The line with a caret under the place. Tabs stay tabs in both lines; a long line is cut around the place.
  void add_line(const Diagnostic& d) {
    constexpr size_t kBefore = 80, kAfter = 40;
    const std::string_view source = options_.source;
    size_t begin = d.offset, end = d.offset;
    while (begin > 0 && source[begin - 1] != '\n' && d.offset - begin < kBefore) --begin;
    while (end < source.size() && source[end] != '\n' && end - d.offset < kAfter + d.length) ++end;
    const size_t length = std::max<size_t>(1, std::min(d.length, end - d.offset));
    std::string under;
    for (const char c : source.substr(begin, d.offset - begin)) {
      if ((c & 0xc0) != 0x80) under += c == '\t' ? '\t' : ' ';  // one per character
    }
    std::string line(source.substr(begin, end - begin));
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; }, ' ');
    text_ += fmt::format("    {}\n    {}", line, under);
    paint(kGreen, "^" + std::string(length - 1, '~'));
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
  if (d.offset != kNoOffset) json += fmt::format(",\"byte\":{}", d.offset);
  if (!options.source.empty() && d.offset < options.source.size()) {
    const Position at = lines.position_of(d.offset);
    json += fmt::format(",\"line\":{},\"column\":{}", at.line, at.column);
  }
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
  for (size_t i = 0; i < report.diagnostics.size(); ++i) {
    if (i > 0) json += ",";
    json += json_problem(report.diagnostics[i], options, lines);
  }
  return json + "]}";
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
