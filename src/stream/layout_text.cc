// The text of a stream's roles for people.
#include <fmt/format.h>

#include "base/harmless.h"
#include "stream/layout.h"

namespace treadle {

namespace {

// Lines about sizes that the model leaves open, except sizes that other inputs determine.
std::string first_sizes_text(const StreamLayout::State& state) {
  std::string text;
  for (size_t i = 0; i < state.first.why.size() && !state.has_initial; ++i) {
    const auto line = [&](const std::string& why) {
      text += fmt::format("         {} begins with {} along axis {}: {}\n", harmless(state.input->name),
                          state.first.shape[i].value_or(1), i, why);
    };
    switch (state.first.why[i]) {
      case stream::FirstSize::kGrows:
        line("each run appends");
        break;
      case stream::FirstSize::kGiven:
        line("so many each run gives");
        break;
      case stream::FirstSize::kKept:
        line("a guess, since a run keeps the size that it is given");
        break;
      case stream::FirstSize::kUnknown:
        line("a guess, since nothing is known of the size");
        break;
      case stream::FirstSize::kStated:
      case stream::FirstSize::kOfInputs:
        break;
    }
  }
  return text;
}

}  // namespace

std::string StreamLayout::to_string(bool remarks) const {
  const auto outs = session->outputs();
  std::string text = over_time ? fmt::format("stream over time: blocks of {} samples, {} in the first, delay {}\n",
                                             over_time->hop, over_time->first, over_time->delay)
                     : hop > 0 ? fmt::format("stream: a run per {} samples, {} of context\n", hop, context)
                               : fmt::format("stream: a run per push, {} samples of context\n", context);
  for (const State& s : states) {
    text += fmt::format("  state  {} <- {}  {}{}\n", harmless(s.input->name), harmless(outs[s.output].name),
                        harmless(s.input->type.to_string()),
                        s.found.empty() || !remarks ? "" : fmt::format("  (found {})", s.found));
    if (remarks) text += first_sizes_text(s);
  }
  if (over_time) {
    for (const std::string& name : over_time->states) text += fmt::format("  state  {}  (found)\n", harmless(name));
  }
  for (const Timed& t : timed) {
    text += fmt::format("  time   {} along axis {}  {}{}\n", harmless(t.input->name), t.axis,
                        harmless(t.input->type.to_string()), t.found ? "  (found)" : "");
  }
  for (const Timed& t : timed) {
    if (t.edges.empty() || !remarks) continue;
    text += fmt::format(
        "         {}, and sees nothing of the block before: give `context` where the model was made with it\n",
        t.edges);
  }
  for (const auto& [name, value] : bound)
    text += fmt::format("  bound  {}  {}\n", harmless(name), value.type().to_string());
  for (const IoInfo* info : given) {
    text += fmt::format("  given  {} with each push  {}\n", harmless(info->name), harmless(info->type.to_string()));
  }
  for (const Output& o : outputs) {
    text += fmt::format("  output {}  {}, {}\n", harmless(outs[o.index].name), harmless(outs[o.index].type.to_string()),
                        over_time && o.time_axis >= 0 ? fmt::format("frames along axis {}", o.time_axis)
                        : over_time                   ? std::string("so far")
                        : hop == 0                    ? std::string("as it is")
                        : o.time_axis >= 0            ? fmt::format("joined along axis {}", o.time_axis)
                                                      : std::string("stacked"));
  }
  return text;
}

}  // namespace treadle
