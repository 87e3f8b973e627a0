#include "enhancer.h"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <treadle/treadle.hpp>

#include "samples.h"
#include "spectra.h"

namespace {

constexpr int kFloat = 1;
constexpr size_t kBlock = 64;  // samples of a push, where nothing else is said
constexpr size_t kPiece = 256;

// A number among the properties of a model; 0: there is none of this name.
int64_t property(const treadle::Session& session, const std::string& wanted) {
  for (const auto& [name, value] : session.properties()) {
    if (name == wanted) return std::strtoll(value.c_str(), nullptr, 10);
  }
  return 0;
}

void check_rate(const treadle::Session& session, const Settings& settings) {
  const int64_t rate = settings.model_rate ? settings.model_rate : property(session, "sample_rate");
  if (rate <= 0) {
    throw std::runtime_error(settings.model +
                             " does not say its sample rate in a property 'sample_rate'; TREADLE_ENHANCE_RATE can");
  }
  if (rate != settings.host_rate) {
    throw std::runtime_error(settings.model + " is for " + std::to_string(rate) + " samples per second, the host has " +
                             std::to_string(settings.host_rate));
  }
}

// The one input that is no state, with its sizes; -1: the model leaves a size open.
struct Input {
  std::string name;
  std::vector<int64_t> dims;
};

Input find_input(const treadle::Session& session, const std::vector<std::string>& states) {
  std::string found;
  std::vector<size_t> given;
  for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
    if (std::find(states.begin(), states.end(), session.name(TREADLE_INPUT, i)) != states.end()) continue;
    given.push_back(i);
    found +=
        (found.empty() ? "" : ", ") + session.name(TREADLE_INPUT, i) + ": " + session.type(TREADLE_INPUT, i).text();
  }
  if (given.size() != 1 || session.type(TREADLE_INPUT, given[0]).element() != kFloat) {
    throw std::runtime_error("expected one input of floats beside the states, found " +
                             (found.empty() ? "none" : found));
  }
  const treadle::Type type = session.type(TREADLE_INPUT, given[0]);
  Input input{session.name(TREADLE_INPUT, given[0]), {}};
  for (int64_t axis = 0; axis < type.rank(); ++axis) input.dims.push_back(type.dim(axis));
  return input;
}

// The axis of the samples: the last one whose size is open; -1: there is none, or another axis is longer than 1.
int64_t time_axis(const std::vector<int64_t>& dims) {
  int64_t found = -1;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] < 0) found = static_cast<int64_t>(axis);
    if (dims[axis] > 1) return -1;
  }
  return found;
}

std::string sizes_text(const std::vector<int64_t>& dims) {
  std::string text;
  for (const int64_t dim : dims) text += (text.empty() ? "" : ",") + (dim < 0 ? "?" : std::to_string(dim));
  return "[" + text + "]";
}

}  // namespace

std::unique_ptr<Enhancer> Enhancer::open(const Settings& settings) {
  treadle::SessionOptions options;
  options.threads(1).set("jit", "always").set("weight_files", "copy");  // not from the disk in time
  const treadle::Session session(settings.model, options);
  check_rate(session, settings);
  treadle::Stream steps(session, treadle::StreamOptions());
  const auto [name, dims] = find_input(session, steps.state_names());
  if (Spectra::takes(dims)) {
    const int64_t hop = settings.hop ? settings.hop : property(session, "hop_length");
    return std::make_unique<Spectra>(std::move(steps), name, dims, static_cast<size_t>(hop));
  }
  const int64_t axis = time_axis(dims);
  if (axis < 0) {
    throw std::runtime_error("expected samples, as [1,?], or a spectrum, as [1,257,1,2], found " + name +
                             sizes_text(dims));
  }
  const size_t block = settings.block > 0 ? static_cast<size_t>(settings.block) : kBlock;
  std::vector<int64_t> chunk(dims.size(), 1);
  chunk[static_cast<size_t>(axis)] = static_cast<int64_t>(block);
  treadle::Stream over_time(session, treadle::StreamOptions().time(name, axis));
  return std::make_unique<Samples>(std::move(over_time), name, chunk, block);
}

void Enhancer::set_latency(size_t samples) {
  latency_ = samples;
  came_.assign(samples + kPiece, 0.0f);
}

void Enhancer::begin() {
  std::fill(came_.begin(), came_.end(), 0.0f);
  next_ = 0;
  restart();
}

void Enhancer::process(const float* in, float* out, size_t count, float amount) {
  while (count > 0) {
    const size_t piece = std::min(count, kPiece);
    for (size_t i = 0; i < piece; ++i) came_[(next_ + i) % came_.size()] = in[i];
    const float share = advance(in, out, piece) ? amount : 0.0f;
    const size_t late = next_ + came_.size() - latency_;
    for (size_t i = 0; i < piece; ++i) {
      const float before = came_[(late + i) % came_.size()];
      out[i] = share == 1.0f ? out[i] : share == 0.0f ? before : before + share * (out[i] - before);
    }
    next_ = (next_ + piece) % came_.size();
    in += piece;
    out += piece;
    count -= piece;
  }
}
