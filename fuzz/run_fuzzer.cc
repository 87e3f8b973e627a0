// Bytes as a model that is loaded and run in both tiers, within limits of time, iterations and memory. It ends, with
// results of the declared kind or a Status; and where both tiers give results, these have the same types. Loops of some
// models are run as native code as well, to the same end.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "fuzz/support/found.h"
#include "fuzz/support/model_hooks.h"
#include "model/text_file.h"
#include "op/registry.h"
#include "session/session.h"

namespace {

using namespace treadle;  // NOLINT(google-build-using-namespace)

constexpr size_t kMemory = size_t{16} << 20;
constexpr int64_t kElements = 4096;  // of an input

struct Fed {
  std::vector<std::string_view> names;
  std::vector<AnyValue> values;

  std::vector<Feed> feeds() const {
    std::vector<Feed> all;
    for (size_t i = 0; i < names.size(); ++i) all.push_back({names[i], &values[i]});
    return all;
  }
};

// Small numbers for every input that is a tensor; `draw` decides sizes that are not known. What is left out, is.
Fed make_feeds(const Session& session, uint64_t draw) {
  fuzz::Random random(draw);
  Fed fed;
  for (const IoInfo& input : session.inputs()) {
    if (!input.type.is_tensor() || (input.has_default && random.one_in(2))) continue;
    Dims dims;
    int64_t count = 1;
    for (const Dim& dim : input.type.shape) {
      const int64_t size = dim.is_known() ? dim.value() : static_cast<int64_t>(random.below(4));
      if (size < 0 || (size != 0 && count > kElements / size)) return fed;
      dims.push_back(size);
      count *= size;
    }
    auto tensor = Tensor::allocate(input.type.element, dims);
    if (!tensor.ok()) return fed;
    if (is_string(input.type.element)) {
      for (int64_t i = 0; i < count; ++i) tensor->mutable_data<String>()[i] = random.pick(fuzz::vocabulary().settings);
    } else if (input.type.element == ElementType::kFloat) {
      for (int64_t i = 0; i < count; ++i) tensor->mutable_data<float>()[i] = static_cast<float>(random.real());
    } else {
      auto* bytes = static_cast<uint8_t*>(tensor->mutable_raw());
      const size_t width = byte_width(input.type.element);
      std::memset(bytes, 0, tensor->byte_size());
      for (size_t i = 0; i < tensor->byte_size(); i += width) bytes[i] = static_cast<uint8_t>(random.below(4));
      if (input.type.element == ElementType::kBool) {
        for (size_t i = 0; i < tensor->byte_size(); ++i) bytes[i] &= 1;
      }
    }
    fed.names.push_back(input.name);
    fed.values.emplace_back(std::move(*tensor));
  }
  return fed;
}

// What became of one run.
struct Outcome {
  Status status;
  std::vector<AnyValue> results;  // none where it failed
};

// Of two runs, the second of which makes some sizes symbols; none where the model was refused.
std::vector<Outcome> run(std::string_view bytes, Tier tier, Jit jit = Jit::kOff, int64_t jit_iteration = 0) {
  SessionOptions options;
  options.tier = tier;
  options.threads = 1;
  options.jit = jit;
  options.jit_iteration = jit_iteration;
  auto session = Session::from_bytes(std::as_bytes(std::span(bytes)), options);
  if (!session.ok()) {
    fuzz::expect_sound(session.error());
    return {};
  }
  RunOptions limits;
  limits.time_limit_s = 1;
  limits.iteration_limit = 300;
  limits.memory_limit = kMemory;
  std::vector<Outcome> outcomes;
  for (const uint64_t draw : {1, 2}) {
    const Fed fed = make_feeds(**session, draw);
    Outcome& outcome = outcomes.emplace_back();
    outcome.status = (*session)->run(fed.feeds(), {}, outcome.results, limits);
    fuzz::expect_sound(outcome.status);
    if (!outcome.status.ok()) outcome.results.clear();
  }
  return outcomes;
}

// Where both tiers give results, these are of the same kinds and types.
void compare_types(const Outcome& judged, const Outcome& planned) {
  if (judged.results.empty() || planned.results.empty()) return;
  fuzz::expect(judged.results.size() == planned.results.size(), "unlike numbers of results");
  for (size_t i = 0; i < judged.results.size(); ++i) {
    const AnyValue &a = judged.results[i], &b = planned.results[i];
    fuzz::expect(a.kind() == b.kind(), "results of unlike kinds");
    if (a.is_tensor()) fuzz::expect(a.tensor().type() == b.tensor().type(), "results of unlike types");
  }
}

// To the last bit, but for which NaN it is.
bool same(const Tensor& a, const Tensor& b) {
  if (identical(a, b)) return true;
  if (a.type() != b.type() || !(a.dims() == b.dims()) || !is_float(a.type())) return false;
  for (int64_t i = 0; i < a.element_count(); ++i) {
    const double x = a.double_at(i), y = b.double_at(i);
    if (std::isnan(x) ? !std::isnan(y) : x != y || std::signbit(x) != std::signbit(y)) return false;
  }
  return true;
}

bool same(const AnyValue& a, const AnyValue& b) {
  return a.is_tensor() && b.is_tensor() ? same(a.tensor(), b.tensor()) : identical(a, b);
}

// Native code and the interpreter give the same results and the same errors, except that time runs out when it does.
bool same(const Outcome& a, const Outcome& b) {
  if (a.status.code() == Code::kLimit || b.status.code() == Code::kLimit) return true;
  return a.status.to_string() == b.status.to_string() &&
         std::ranges::equal(a.results, b.results, [](const AnyValue& x, const AnyValue& y) { return same(x, y); });
}

bool same(const std::vector<Outcome>& a, const std::vector<Outcome>& b) {
  return std::ranges::equal(a, b, [](const Outcome& x, const Outcome& y) { return same(x, y); });
}

// Whether the model may draw random numbers: it has the name of an operator that does.
bool may_draw(std::string_view bytes) {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> found;
    for (const OpDef* op : all_ops()) {
      if (op->effects == Effects::kRandom) found.push_back(op->name);
    }
    return found;
  }();
  return std::ranges::any_of(names, [&](std::string_view name) { return bytes.find(name) != std::string_view::npos; });
}

// Compiling a loop takes as long as running some ten models, so only one in so many is.
constexpr size_t kInterpretedPerNative = 8;

void compare_native(std::string_view bytes, const std::vector<Outcome>& interpreted) {
  const size_t chosen = std::hash<std::string_view>()(bytes);
  if (chosen % kInterpretedPerNative != 0 || may_draw(bytes)) return;
  const auto from_iteration = static_cast<int64_t>(chosen / kInterpretedPerNative % 2);
  const std::vector<Outcome> native = run(bytes, Tier::kProgram, Jit::kAlways, from_iteration);
  if (same(native, interpreted)) return;
  for (size_t i = 0; i < native.size(); ++i) {
    fmt::print(stderr, "run {}: {} | {}\n", i, native[i].status.to_string(), interpreted[i].status.to_string());
  }
  fuzz::found("native code that differs");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = model::binary_model(wire::MappedFile::borrow({reinterpret_cast<const char*>(data), size}));
  if (!file.ok()) return 0;
  const std::vector<Outcome> judged = run((*file)->bytes(), Tier::kReference);
  const std::vector<Outcome> planned = run((*file)->bytes(), Tier::kProgram);
  for (size_t i = 0; i < std::min(judged.size(), planned.size()); ++i) compare_types(judged[i], planned[i]);
  compare_native((*file)->bytes(), planned);
  return 0;
}
