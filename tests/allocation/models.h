#pragma once
// Models that between them go through much of the engine, each with inputs.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "treadle/treadle.h"

namespace treadle::faults {

template <auto kFree>
struct Freed {
  void operator()(auto* handle) const { kFree(handle); }
};
using Value = std::unique_ptr<treadle_value, Freed<treadle_value_free>>;
using Session = std::unique_ptr<treadle_session, Freed<treadle_session_free>>;
using Options = std::unique_ptr<treadle_options, Freed<treadle_options_free>>;
using Stream = std::unique_ptr<treadle_stream, Freed<treadle_stream_free>>;
using StreamOptions = std::unique_ptr<treadle_stream_options, Freed<treadle_stream_options_free>>;
using Pool = std::unique_ptr<treadle_pool, Freed<treadle_pool_free>>;

// Ends the process when something fails that nothing was done to.
void require_ok(treadle_status* status);

struct Input {
  std::string name;
  std::function<Value()> make;
};

using Settings = std::vector<std::pair<std::string, std::string>>;  // of a session

struct Model {
  std::string name;
  std::string text;  // ONNX text
  std::vector<Input> inputs;
  Settings settings;
  bool may_lose = false;  // a foreign library leaks memory in it
};

// What a stream over a model is made of.
struct StreamModel {
  Model model;                             // its inputs: those that come with each push
  std::vector<int64_t> chunk;              // sizes of a chunk of x
  int64_t axis = 0, hop = 0, context = 0;  // of time in x
  bool pools = false;                      // there is a batch
  std::vector<Input> bound = {};
};

std::vector<Model> models();
// With so much work that two threads share it.
std::vector<Model> threaded_models();
std::vector<StreamModel> stream_models();
// A model that lies in files: `folder`/model.onnx and its external data. Writes the data.
Model external_model(const std::string& folder);

}  // namespace treadle::faults
