// The text and the JSON of a trace.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/harmless.h"
#include "base/json.h"
#include "op/op_def.h"
#include "report/statistics_text.h"
#include "report/trace.h"

namespace treadle::report {

namespace {

using kernels::Statistics;

constexpr size_t kMostRows = 40, kMostBehindFindings = 10;  // of the text

Statistics all_of(const ValueSeries& series) {
  Statistics all;
  for (const Statistics& sample : series.samples) all.add(sample);
  return all;
}

struct Row {
  std::string name;
  size_t samples;
  Statistics all;
};

// Values with NaN first, then with infinities, then the largest.
bool is_worse(const Row& a, const Row& b) {
  const auto size = [](const Statistics& s) { return std::max(s.high, -s.low); };
  if ((a.all.nan > 0) != (b.all.nan > 0)) return a.all.nan > 0;
  if ((a.all.infinite > 0) != (b.all.infinite > 0)) return a.all.infinite > 0;
  if (size(a.all) != size(b.all)) return size(a.all) > size(b.all);
  return a.name < b.name;
}

template <class F>
std::string column(const ValueSeries& series, F&& number) {
  std::vector<std::string> items;
  for (const Statistics& sample : series.samples) items.push_back(number(sample));
  return json_array(items);
}

std::string json_of(const ValueSeries& series) {
  std::vector<std::string> loops, iterations;
  for (const std::string& loop : series.called->loops) loops.push_back(json_text(loop));
  for (size_t i = 0; series.depth() > 0 && i < series.samples.size(); ++i) {
    const auto at = std::span(series.iterations).subspan(i * series.depth(), series.depth());
    iterations.push_back(fmt::format("[{}]", fmt::join(at, ", ")));
  }
  JsonObject json;
  const ir::Node* const node = series.value->producer;
  json.text("name", series.name()).text("node", node ? node->name.view() : "").text("op", node ? node->op->name : "");
  json.raw("loops", json_array(loops));
  if (!series.missing.empty()) return json.text("missing", series.missing).str();
  json.raw("iterations", json_array(iterations));
  json.raw("minimum",
           column(series, [](const Statistics& s) { return s.low <= s.high ? number_json(s.low) : "null"; }));
  json.raw("maximum",
           column(series, [](const Statistics& s) { return s.low <= s.high ? number_json(s.high) : "null"; }));
  json.raw("mean", column(series, [](const Statistics& s) { return s.finite() > 0 ? number_json(s.mean()) : "null"; }));
  json.raw("norm", column(series, [](const Statistics& s) { return number_json(s.norm()); }));
  json.raw("nan", column(series, [](const Statistics& s) { return std::to_string(s.nan); }));
  json.raw("inf", column(series, [](const Statistics& s) { return std::to_string(s.infinite); }));
  return json.raw("zero", column(series, [](const Statistics& s) { return std::to_string(s.zero); })).str();
}

}  // namespace

std::string to_text(const Trace& trace) {
  std::string out = trace.found ? to_text(*trace.found) : "";
  std::vector<Row> rows;
  std::vector<std::string> missing;
  size_t widest = 5;
  for (const ValueSeries& series : trace.values) {
    if (!series.samples.empty()) {
      rows.push_back({harmless(series.name()), series.samples.size(), all_of(series)});
    } else if (!series.missing.empty()) {
      missing.push_back(harmless(series.name()));
    }
  }
  if (rows.empty()) return out;
  std::sort(rows.begin(), rows.end(), is_worse);
  const size_t shown = std::min(rows.size(), trace.found ? kMostBehindFindings : kMostRows);
  for (size_t i = 0; i < shown; ++i) widest = std::max(widest, std::min<size_t>(rows[i].name.size(), 60));
  out += fmt::format("{:<{}}  {:>8}  {}\n", "value", widest, "samples", "range over all of them");
  for (size_t i = 0; i < shown; ++i) {
    out += fmt::format("{:<{}}  {:>8}  {}\n", rows[i].name, widest, rows[i].samples, to_text(rows[i].all));
  }
  if (rows.size() > shown) out += fmt::format("... and {} more values\n", rows.size() - shown);
  constexpr size_t kMostNames = 8;
  if (!missing.empty()) {
    const size_t named = std::min(missing.size(), kMostNames);
    out += fmt::format("not computed, since nothing that runs reads them: {}{}\n",
                       fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(named), ", "),
                       named < missing.size() ? ", ..." : "");
  }
  if (trace.every > 1) out += fmt::format("samples are of one iteration in {}\n", trace.every);
  return out;
}

std::string to_json(const Trace& trace) {
  std::vector<std::string> values;
  for (const ValueSeries& series : trace.values) values.push_back(json_of(series));
  JsonObject json;
  json.integer("every", trace.every).raw("values", json_array(values));
  if (trace.found) json.raw("found", to_json(*trace.found));
  return json.str();
}

}  // namespace treadle::report
