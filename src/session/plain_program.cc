#include "session/plain_program.h"

#include <algorithm>

#include "kernels/dispatch.h"
#include "session/limited_work.h"
#include "session/optimize.h"
#include "session/shared_weights.h"
#include "session/signature.h"

namespace treadle::session {

namespace {

// Passes that replace operators by ones that are quicker as kernels and compute the same bits.
constexpr std::string_view kForKernels[] = {"fuse-convolutions", "compute-on-bytes",  "fuse-integer-products",
                                            "fuse-attention",    "lay-channels-last", "append-to-picked-rows"};

Result<std::vector<plan::InputSpec>> knowledge_of_plain(const Loaded& loaded, const PlainSizes& known) {
  std::vector<plan::InputSpec> knowledge = knowledge_of_model(loaded.inputs);
  GivenSizes sizes(known.sizes);
  std::vector<bool> fixed(knowledge.size());
  for (const Feed& feed : known.fixed) {
    size_t at = 0;
    while (at < knowledge.size() && loaded.inputs[at].name != feed.name) ++at;
    if (at == knowledge.size()) return error(Code::kInvalidArgument, "the model has no input '{}'", feed.name);
    TREADLE_TRY(loaded.inputs.check(at, *feed.value));
    if (!feed.value->is_tensor()) return error(Code::kInvalidArgument, "input '{}': expected a tensor", feed.name);
    knowledge[at].type = feed.value->type();
    knowledge[at].contents = feed.value->tensor();
    fixed[at] = true;
  }
  for (const auto& [name, type] : known.types) {
    for (size_t i = 0; i < knowledge.size(); ++i) {
      if (loaded.inputs[i].name != name || fixed[i]) continue;
      knowledge[i].type = type;
      fixed[i] = true;
    }
  }
  for (size_t i = 0; i < knowledge.size(); ++i) {
    const IoInfo& input = loaded.inputs[i];
    if (fixed[i]) continue;
    if (input.has_default && loaded.inputs.default_of(i).is_tensor()) {
      knowledge[i].type = loaded.inputs.default_of(i).type();
      knowledge[i].contents = loaded.inputs.default_of(i).tensor();
      continue;
    }
    TREADLE_TRY(sizes.close(input.name, knowledge[i].type));
  }
  TREADLE_TRY(sizes.all_used());
  return knowledge;
}

}  // namespace

Status GivenSizes::close(const std::string& input, Type& type) {
  if (type.kind != Type::Kind::kTensor || !type.has_shape) {
    return error(Code::kInvalidArgument, "input '{}' is {}: expected a tensor of known rank", input, type.to_string());
  }
  const std::string open = set(input, type);
  if (open.empty()) return {};
  return error(Code::kInvalidArgument, "input '{}' is {}: say its size '{}'", input, type.to_string(), open);
}

std::string GivenSizes::set(const std::string& input, Type& type) {
  std::string open;
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    Dim& size = type.shape[axis];
    if (size.is_known()) continue;
    const std::string symbol(size.symbol_name()), place = input + ":" + std::to_string(axis);
    if (const auto known = find(place)) {
      size = *known;
    } else if (const auto named = symbol.empty() ? std::nullopt : find(symbol)) {
      size = *named;
    } else if (open.empty()) {
      open = symbol.empty() ? place : symbol;
    }
  }
  return open;
}

Status GivenSizes::all_used() const {
  for (size_t i = 0; i < given_.size(); ++i) {
    if (!used_[i]) {
      return error(Code::kInvalidArgument, "no input has an open size '{}': expected a size's name, or input:axis",
                   given_[i].first);
    }
  }
  return {};
}

std::optional<int64_t> GivenSizes::find(std::string_view name) {
  for (size_t i = 0; i < given_.size(); ++i) {
    if (given_[i].first == name) return used_[i] = true, given_[i].second;
  }
  return std::nullopt;
}

Result<std::shared_ptr<const plan::Program>> plain_program(const Loaded& loaded, const PlainSizes& known) {
  TREADLE_ASSIGN(const std::vector<plan::InputSpec> knowledge, knowledge_of_plain(loaded, known));
  opt::PipelineOptions pipeline = loaded.pipeline();
  for (const std::string_view name : kForKernels) {
    TREADLE_ASSIGN(const size_t pass, opt::pass_named(name));
    pipeline.off.insert(pass);
  }
  std::shared_ptr<const plan::Program> program;
  LimitedWork work(loaded.options.load, "planning");
  TREADLE_TRY(work.run([&]() -> Status {
    const kernels::ScopedIsa isa(known.isa);
    TREADLE_ASSIGN(plan::Specialized specialized, optimize(*loaded.graph, knowledge, pipeline));
    share_weights(*specialized.graph);
    TREADLE_ASSIGN(program, plan::make_program(specialized.graph, std::make_shared<PackCache>(),
                                               {.optimize = loaded.options.optimize, .plain = true}));
    return {};
  }));
  return program;
}

}  // namespace treadle::session
