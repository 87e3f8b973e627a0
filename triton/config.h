#pragma once
// What config.pbtxt says of a model, and whether the model is so.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "json.h"
#include "treadle/treadle.hpp"
#include "triton_api.h"

namespace backend {

// Optional input and output that hold a stream: what it was saved as, and what it is to go on from.
inline constexpr const char* kSnapshot = "treadle_state";

struct Config {
  struct Tensor {
    std::string name;
    int element = 0;            // ONNX's number
    std::vector<int64_t> dims;  // without the batch, -1: any
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
  std::optional<Tensor> correlation;  // of these, the one that holds the correlation id
  std::vector<State> states;
  bool in_sequences = false;
  double server_idle_s = 0;  // after this time without a request the server itself forgets a sequence
  std::map<std::string, std::string> parameters;

  // Errors: InvalidArgument for what treadle does not do.
  static Config read(const Json& json);

  const std::string* parameter(const std::string& name) const;
  // Errors of both: InvalidArgument where the text is no such number.
  int64_t integer(const std::string& name, int64_t otherwise, int64_t least) const;
  double seconds(const std::string& name, double otherwise) const;
};

// Options of a session, with which a model is opened.
treadle::SessionOptions session_options(const Config& config);

// Inputs that are the same in every run: parameter "bind".
treadle::Feeds bound_inputs(const Config& config, const treadle::Session& session);

// What the model takes and gives. Errors: InvalidArgument, with what config.pbtxt says and what the model has.
class Signature {
 public:
  Signature(const Config& config, const treadle::Session& session);

  // The type of an input (initialisers that a caller may replace among them); none: the model has no such input.
  std::optional<treadle::Type> input(const std::string& name) const;
  std::optional<treadle::Type> output(const std::string& name) const;
  // Holds a tensor of config.pbtxt against the model. `any_axis`: an axis along which sizes are not compared; -1: none.
  void check_input(const Config::Tensor& tensor, int64_t any_axis = -1) const;
  void check_output(const Config::Tensor& tensor) const;
  // Each input of the model is fed: by a request, by the server, by a state, or bound.
  void check_all_fed(const std::vector<std::string>& fed) const;

 private:
  void check_tensor(const char* what, const Config::Tensor& tensor, const treadle::Type& type, int64_t any_axis) const;

  const Config& config_;
  const treadle::Session& session_;
};

}  // namespace backend
