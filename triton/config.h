#pragma once
// The contents of config.pbtxt, and whether they fit the model.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "json.h"
#include "treadle/treadle.hpp"
#include "triton_api.h"

namespace backend {

// Optional input and output with a stream's snapshot: the stream to continue from, and the saved stream.
inline constexpr const char* kSnapshot = "treadle_state";

struct Config {
  struct Tensor {
    std::string name;
    int element = 0;            // ONNX's number
    std::vector<int64_t> dims;  // without the batch; -1: any
    bool optional = false;
  };
  // A state that the server keeps ("implicit").
  struct State {
    Tensor input;
    std::string output;
  };

  std::string model;
  std::string file;  // in the version's folder
  int64_t max_batch = 0;
  std::vector<Tensor> inputs, outputs;
  std::vector<Tensor> controls;       // inputs that the server's batcher adds
  std::optional<Tensor> correlation;  // the control with the correlation id
  std::vector<State> states;
  bool in_sequences = false;
  double server_idle_s = 0;  // after this time without a request the server forgets a sequence
  std::map<std::string, std::string> parameters;

  // Errors: InvalidArgument for settings that treadle does not support.
  static Config read(const Json& json);

  const std::string* parameter(const std::string& name) const;
  // Errors of both: InvalidArgument if the text is not such a number.
  int64_t integer(const std::string& name, int64_t otherwise, int64_t least) const;
  double seconds(const std::string& name, double otherwise) const;
};

// Options of the sessions of a model.
treadle::SessionOptions session_options(const Config& config);

// Inputs that are the same in every run: parameter "bind".
treadle::Feeds bound_inputs(const Config& config, const treadle::Session& session);

// The inputs and outputs of the model. Errors: InvalidArgument, with the contents of config.pbtxt and those of the
// model.
class Signature {
 public:
  Signature(const Config& config, const treadle::Session& session);

  // The type of an input, or of an initialiser that a caller may replace; none: the model has no such input.
  std::optional<treadle::Type> input(const std::string& name) const;
  std::optional<treadle::Type> output(const std::string& name) const;
  // Compares a tensor of config.pbtxt with the model. `any_axis`: an axis along which sizes are not compared; -1: none.
  void check_input(const Config::Tensor& tensor, int64_t any_axis = -1) const;
  void check_output(const Config::Tensor& tensor) const;
  // Checks that each input of the model is fed: by a request, by the server, by a state, or bound.
  void check_all_fed(const std::vector<std::string>& fed) const;

 private:
  void check_tensor(const char* what, const Config::Tensor& tensor, const treadle::Type& type, int64_t any_axis) const;

  const Config& config_;
  const treadle::Session& session_;
};

}  // namespace backend
