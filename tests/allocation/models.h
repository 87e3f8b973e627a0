#pragma once
// Models that together use most of the engine, each with inputs.

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

// Ends the process if a call fails that was not made to fail.
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

// A stream over a model.
struct StreamModel {
  Model model;                             // its inputs: those that are given with each push
  std::vector<int64_t> chunk;              // sizes of a chunk of x
  int64_t axis = 0, hop = 0, context = 0;  // of the time axis of x
  bool pools = false;                      // whether the model has a batch
  std::vector<Input> bound = {};
};

std::vector<Model> models();
// With enough work for two threads to share it.
std::vector<Model> threaded_models();
std::vector<StreamModel> stream_models();
// A model in files: `folder`/model.onnx and its external data. Writes the data.
Model external_model(const std::string& folder);

}  // namespace treadle::faults
