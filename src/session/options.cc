#include "session/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/cpu.h"
#include "base/knobs.h"
#include "base/memory_fill.h"
#include "kernels/conv.h"
#include "kernels/gemm.h"

namespace treadle::session {

namespace {

bool is_number(std::string_view text, int64_t& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

// `what`: what the names of `known` are.
Status check_name(Variable variable, std::string_view what, const std::vector<std::string_view>& known) {
  const char* found = environment(variable);
  if (!found || !*found || std::find(known.begin(), known.end(), found) != known.end()) return {};
  return error(Code::kInvalidArgument, "{} names {} ({}), found '{}'", variable.name(), what, fmt::join(known, ", "),
               found);
}

// Checks the remaining variables: TREADLE_ISA must be a known instruction set, though this machine may lack it,
// TREADLE_CONV a method of convolution, TREADLE_GEMM a walk of products; others a number of bytes, a byte, or off.
Status check_environment() {
  int64_t bytes = 0;
  const char* room = environment("TREADLE_JIT_CACHE_BYTES");
  if (room && *room && (!is_number(room, bytes) || bytes < 0)) {
    return error(Code::kInvalidArgument, "TREADLE_JIT_CACHE_BYTES takes a number of bytes, found '{}'", room);
  }
  const char* signal = environment("TREADLE_SIGBUS");
  if (signal && *signal && std::string_view(signal) != "off") {
    return error(Code::kInvalidArgument, "TREADLE_SIGBUS is off or left alone, found '{}'", signal);
  }
  const char* fill = environment(kFillVariable);
  if (fill && *fill && !fill_named(fill)) {
    return error(Code::kInvalidArgument, "{} takes a number from 0 to 255, found '{}'", kFillVariable, fill);
  }
  TREADLE_TRY(check_name("TREADLE_CONV", "a method of convolution", kernels::conv_methods()));
  TREADLE_TRY(check_name("TREADLE_GEMM", "a walk of matrix products", kernels::gemm_walks()));
  const char* wanted = environment("TREADLE_ISA");
  if (!wanted) return {};
  std::string known;
  for (int i = 0; i < kIsaCount; ++i) {
    const std::string_view isa = name(static_cast<Isa>(i));
    if (isa == wanted) return {};
    known += fmt::format("{}{}", i > 0 ? ", " : "", isa);
  }
  return error(Code::kInvalidArgument, "TREADLE_ISA names an instruction set ({}), found '{}'", known, wanted);
}

}  // namespace

Status read_environment(SessionOptions& options) {
  const char* off = environment("TREADLE_PASSES_OFF");
  if (off && options.passes_off.empty()) options.passes_off = off;
  const char* text = environment("TREADLE_JIT");
  TREADLE_TRY(check_environment());
  if (!text || !*text || options.jit != Jit::kAuto) return {};
  const std::string_view wanted(text);
  const std::string_view mode = wanted.substr(0, wanted.find(','));
  const bool has_iteration = mode.size() < wanted.size();
  const std::string_view iteration = has_iteration ? wanted.substr(mode.size() + 1) : "0";
  const std::optional<Jit> named = jit_named(mode);
  if (!named || !is_number(iteration, options.jit_iteration)) {
    return error(Code::kInvalidArgument,
                 "TREADLE_JIT is off, auto, always or required, and may be followed by a comma and an "
                 "iteration; found '{}'",
                 wanted);
  }
  options.jit = *named;
  return {};
}

std::vector<std::string> remarks_on_reference(const SessionOptions& options) {
  std::vector<std::string> asked;
  if (options.tier != Tier::kReference) return asked;
  if (options.weights != Weights::kF32) asked.emplace_back("weights = f16");
  if (options.associative_math) asked.emplace_back("associative_math = 1");
  if (options.jit >= Jit::kAlways) asked.push_back(fmt::format("jit = {}", name(options.jit)));
  if (!options.passes_off.empty()) asked.push_back(fmt::format("passes_off = {}", options.passes_off));
  if (!options.dump.empty()) asked.push_back(fmt::format("dump = {}", options.dump));
  for (std::string& option : asked) option += " has no effect in the reference interpreter";
  return asked;
}

}  // namespace treadle::session
