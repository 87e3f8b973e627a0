#include "stream/identity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/name_map.h"
#include "model/value_file.h"
#include "session/fingerprint.h"
#include "stream/layout.h"

namespace treadle {

namespace {

uint64_t number_of(std::string_view text) {
  constexpr uint64_t kSeed = 0x9e3779b97f4a7c15;  // the same in every process
  return hash_name(text, kSeed);
}

// Names of unknown sizes do not count, since they do not affect the computation.
std::string structure(const Type& type) {
  std::string text = fmt::format("{} {}", static_cast<int>(type.kind), static_cast<int>(type.element));
  for (const Dim& dim : type.shape) text += fmt::format(" {}", dim.value_or(-1));
  return text;
}

// One line for each role. The stream's text for people is not used, because it changes from version to version.
std::string text_of_roles(const StreamLayout& layout) {
  const auto outputs = layout.session->outputs();
  std::string text = fmt::format("hop {} context {} over time {}\n", layout.hop, layout.context, !!layout.over_time);
  for (const auto& state : layout.states) {
    text += fmt::format("state {:?} {:?}\n", state.input->name, outputs[state.output].name);
  }
  for (const auto& timed : layout.timed) text += fmt::format("time {:?} {}\n", timed.input->name, timed.axis);
  for (const IoInfo* given : layout.given) text += fmt::format("given {:?}\n", given->name);
  for (const auto& output : layout.outputs) {
    text += fmt::format("output {:?} {}\n", outputs[output.index].name, output.time_axis);
  }
  return text;
}

uint64_t number_of(const AnyValue& value) {
  if (value.is_tensor()) return session::fingerprint(value.tensor());
  const auto bytes = model::write_value(value);
  return bytes.ok() ? number_of(*bytes) : 0;
}

std::string text_of_bound(const StreamLayout& layout) {
  std::string text;
  for (const auto& [name, value] : layout.bound) {
    text += fmt::format("{:?} {} {}\n", name, value.type().to_string(), number_of(value));
  }
  return text;
}

// Sizes of blocks, and for each state its type and its node. The node is described by its computation, because names do
// not count.
std::string text_of_found(const StreamLayout& layout) {
  if (!layout.over_time) return {};
  const OverTime& over_time = *layout.over_time;
  std::string text = fmt::format("{} {} {}\n", over_time.hop, over_time.first, over_time.delay);
  const auto inputs = over_time.steady->inputs();
  for (const std::string& name : over_time.states) {
    const size_t colon = std::min(name.rfind(':'), name.size());
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [&](const IoInfo& info) { return info.name == name; });
    text += fmt::format("{} {} {}\n", layout.session->fingerprint().node(name.substr(0, colon)), name.substr(colon),
                        input == inputs.end() ? "" : structure(input->type));
  }
  return text;
}

}  // namespace

StreamIdentity StreamIdentity::of(const StreamLayout& layout) {
  const session::Fingerprint& model = layout.session->fingerprint();
  return {.graph = model.graph,
          .weights = model.weights,
          .roles = number_of(text_of_roles(layout)),
          .bound = number_of(text_of_bound(layout)),
          .found = number_of(text_of_found(layout))};
}

Status check_same(const StreamIdentity& mine, const std::string& my_text, const StreamIdentity& other,
                  std::string_view other_text, std::string_view what, bool other_weights) {
  if (other.graph != mine.graph) {
    return error(Code::kInvalidArgument,
                 "{} belongs to another model: its operators, attributes, types or sizes are not those of this one",
                 what);
  }
  if (other.weights != mine.weights && !other_weights) {
    return error(Code::kInvalidArgument, "{} belongs to a model with other weights", what);
  }
  if (other.roles != mine.roles) {
    return error(Code::kInvalidArgument, "{} belongs to another stream, of another kind:\n{}this one is\n{}", what,
                 other_text, my_text);
  }
  if (other.bound != mine.bound) {
    return error(Code::kInvalidArgument, "{} belongs to a stream whose bound inputs hold something else", what);
  }
  if (other.found != mine.found) {
    return error(Code::kInvalidArgument,
                 "{} belongs to a stream that carries other states over time, as a session makes with other options:\n"
                 "{}this one is\n{}",
                 what, other_text, my_text);
  }
  return {};
}

}  // namespace treadle
