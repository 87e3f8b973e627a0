// Bytes as a model that is loaded and run in both tiers, within limits of time, trips and memory. It ends, with results
// of the declared kind or a Status; and where both tiers give results, these have the same types.

#include <cstring>

#include "exec/session.h"
#include "fuzz/support/found.h"
#include "fuzz/support/model_hooks.h"
#include "model/text_file.h"

namespace {

using namespace treadle;  // NOLINT(google-build-using-namespace)

constexpr size_t kMemory = size_t{16} << 20;
constexpr int64_t kElements = 4096;  // of an input

// Small numbers for every input that is a tensor; `draw` decides sizes that are not known. What is left out, is.
std::vector<Feed> make_feeds(const Session& session, uint64_t draw) {
  fuzz::Random random(draw);
  std::vector<Feed> feeds;
  for (const IoInfo& input : session.inputs()) {
    if (!input.type.is_tensor() || (input.has_default && random.one_in(2))) continue;
    Dims dims;
    int64_t count = 1;
    for (const Dim& dim : input.type.shape) {
      const int64_t size = dim.is_known() ? dim.value() : static_cast<int64_t>(random.below(4));
      if (size < 0 || (size != 0 && count > kElements / size)) return feeds;
      dims.push_back(size);
      count *= size;
    }
    auto tensor = Tensor::allocate(input.type.element, dims);
    if (!tensor.ok()) return feeds;
    if (is_string(input.type.element)) {
      for (int64_t i = 0; i < count; ++i)
        tensor->mutable_data<std::string>()[i] = random.pick(fuzz::vocabulary().settings);
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
    feeds.push_back({input.name, std::move(*tensor)});
  }
  return feeds;
}

// No results: it was refused.
std::vector<AnyValue> run(std::string_view bytes, Tier tier) {
  SessionOptions options;
  options.tier = tier;
  options.threads = 1;
  auto session = Session::from_bytes(std::as_bytes(std::span(bytes)), options);
  if (!session.ok()) {
    fuzz::expect_sound(session.error());
    return {};
  }
  RunOptions limits;
  limits.time_limit_s = 1;
  limits.trip_limit = 300;
  limits.memory_limit = kMemory;
  std::vector<AnyValue> results;
  for (uint64_t draw : {1, 2}) {  // the second run makes some sizes symbols
    const std::vector<Feed> feeds = make_feeds(**session, draw);
    results.clear();
    const Status status = (*session)->run(feeds, {}, results, limits);
    if (status.ok()) continue;
    fuzz::expect_sound(status);
    results.clear();
  }
  return results;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = model::binary_model(wire::MappedFile::borrow({reinterpret_cast<const char*>(data), size}));
  if (!file.ok()) return 0;
  const std::vector<AnyValue> judged = run((*file)->bytes(), Tier::kJudge);
  const std::vector<AnyValue> planned = run((*file)->bytes(), Tier::kProgram);
  if (judged.size() != planned.size()) {
    fuzz::expect(judged.empty() || planned.empty(), "unlike numbers of results");
    return 0;
  }
  for (size_t i = 0; i < judged.size(); ++i) {
    fuzz::expect(judged[i].kind() == planned[i].kind(), "results of unlike kinds");
    if (!judged[i].is_tensor()) continue;
    fuzz::expect(judged[i].tensor().type() == planned[i].tensor().type(), "results of unlike types");
  }
  return 0;
}
