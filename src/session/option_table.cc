#include "session/option_table.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

#include "base/knobs.h"
#include "opt/pipeline.h"
#include "session/graph_dump.h"

namespace treadle::session {

namespace {

using Text = std::string_view;

struct Option {
  Text name;
  Status (*set)(SessionOptions& options, Text name, Text value);
};

Result<int64_t> parse_number(Text name, Text text) {
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc() && end == text.data() + text.size()) return number;
  return error(Code::kInvalidArgument, "option {} takes a number, not '{}'", name, text);
}

Status set_tier(SessionOptions& options, Text, Text value) {
  const bool is_reference = value == "reference" || value == "judge";  // as it was called once
  if (value != "program" && !is_reference) {
    return error(Code::kInvalidArgument, "there is no tier '{}' (program, reference)", value);
  }
  options.tier = is_reference ? Tier::kReference : Tier::kProgram;
  return {};
}

Status set_threads(SessionOptions& options, Text name, Text value) {
  constexpr int64_t kMost = 4096;
  TREADLE_ASSIGN(const int64_t threads, parse_number(name, value));
  if (threads < 0 || threads > kMost) return error(Code::kInvalidArgument, "{} threads are out of range", threads);
  options.threads = static_cast<int>(threads);
  return {};
}

Status set_jit(SessionOptions& options, Text, Text value) {
  const std::optional<Jit> jit = jit_named(value);
  if (!jit) return error(Code::kInvalidArgument, "jit is off, auto, always or required, not '{}'", value);
  options.jit = *jit;
  return {};
}

Status set_weights(SessionOptions& options, Text, Text value) {
  if (value != "f32" && value != "f16") return error(Code::kInvalidArgument, "weights are f32 or f16, not '{}'", value);
  options.weights = value == "f16" ? Weights::kF16 : Weights::kF32;
  return {};
}

Status set_weight_files(SessionOptions& options, Text, Text value) {
  if (value != "map" && value != "copy") {
    return error(Code::kInvalidArgument, "weight_files is map or copy, not '{}'", value);
  }
  options.copy_weights = value == "copy";
  return {};
}

Status set_denormals(SessionOptions& options, Text, Text value) {
  if (value != "keep" && value != "flush") {
    return error(Code::kInvalidArgument, "denormals is keep or flush, not '{}'", value);
  }
  if (value == "flush" && !kCanFlushDenormals) {
    return error(Code::kNotImplemented, "denormals = flush: treadle knows no mode of this processor that flushes them");
  }
  options.denormals = value == "flush" ? Denormals::kFlush : Denormals::kKeep;
  return {};
}

Status set_loop_condition(SessionOptions& options, Text, Text value) {
  if (value != "ignored" && value != "obeyed") {
    return error(Code::kInvalidArgument, "loop_condition is ignored or obeyed, not '{}'", value);
  }
  options.obey_loop_conditions = value == "obeyed";
  return {};
}

Status set_passes_off(SessionOptions& options, Text, Text value) {
  TREADLE_TRY(opt::PassSet::named(value).status());
  options.passes_off = value;
  return {};
}

Status set_dump(SessionOptions& options, Text, Text value) {
  TREADLE_TRY(check_dump(value));
  options.dump = value;
  return {};
}

Status set_jit_cache(SessionOptions& options, Text, Text value) {
  options.jit_cache = value;
  return {};
}

Status set_load_time(SessionOptions& options, Text name, Text value) {
  double seconds = 0;
  const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (failure != std::errc() || end != value.data() + value.size() || !(seconds >= 0)) {
    return error(Code::kInvalidArgument, "option {} takes a number of seconds, not '{}'", name, value);
  }
  options.load.time_limit_s = seconds;
  return {};
}

// 0 or 1, a number, a number of bytes: for the member that `kMember` gives.
template <bool& (*kMember)(SessionOptions&)>
Status set_switch(SessionOptions& options, Text name, Text value) {
  if (value != "0" && value != "1") {
    return error(Code::kInvalidArgument, "option {} takes 0 or 1, not '{}'", name, value);
  }
  kMember(options) = value == "1";
  return {};
}

template <int64_t& (*kMember)(SessionOptions&)>
Status set_number(SessionOptions& options, Text name, Text value) {
  TREADLE_ASSIGN(kMember(options), parse_number(name, value));
  return {};
}

template <size_t& (*kMember)(SessionOptions&)>
Status set_bytes(SessionOptions& options, Text name, Text value) {
  TREADLE_ASSIGN(const int64_t bytes, parse_number(name, value));
  if (bytes < 0) return error(Code::kInvalidArgument, "{}: {} bytes are out of range", name, bytes);
  kMember(options) = static_cast<size_t>(bytes);
  return {};
}

bool& optimize(SessionOptions& o) {
  return o.optimize;
}
bool& associative_math(SessionOptions& o) {
  return o.associative_math;
}
bool& bounded_load(SessionOptions& o) {
  return o.bounded_load;
}
int64_t& jit_iteration(SessionOptions& o) {
  return o.jit_iteration;
}
size_t& jit_cache_bytes(SessionOptions& o) {
  return o.jit_cache_bytes;
}
size_t& load_memory(SessionOptions& o) {
  return o.load.memory_limit;
}

// How each option of base/knobs.h is set.
constexpr Option kOptions[] = {
    {"tier", set_tier},
    {"threads", set_threads},
    {"optimize", set_switch<optimize>},
    {"associative_math", set_switch<associative_math>},
    {"weights", set_weights},
    {"weight_files", set_weight_files},
    {"denormals", set_denormals},
    {"loop_condition", set_loop_condition},
    {"jit", set_jit},
    {"jit_iteration", set_number<jit_iteration>},
    {"jit_cache", set_jit_cache},
    {"jit_cache_bytes", set_bytes<jit_cache_bytes>},
    {"load_time_limit", set_load_time},
    {"load_memory_limit", set_bytes<load_memory>},
    {"bounded_load", set_switch<bounded_load>},
    {"passes_off", set_passes_off},
    {"dump", set_dump},
};

constexpr bool are_all_listed() {
  const Option* next = std::begin(kOptions);
  for (const Knob& knob : kKnobs) {
    if (knob.kind != Knob::Kind::kSession) continue;
    if (next == std::end(kOptions) || (next++)->name != knob.name) return false;
  }
  return next == std::end(kOptions);
}
static_assert(are_all_listed(), "the rows of kKnobs in their order were expected");

}  // namespace

Status set_option(SessionOptions& options, std::string_view name, std::string_view value) {
  for (const Option& option : kOptions) {
    if (name == option.name) return option.set(options, name, value);
  }
  std::string known;
  for (const Option& option : kOptions) known += fmt::format("{}{}", known.empty() ? "" : ", ", option.name);
  return error(Code::kInvalidArgument, "there is no option '{}' ({})", name, known);
}

}  // namespace treadle::session
