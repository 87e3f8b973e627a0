#pragma once
// A model of the server's repository: its configuration, and the session of its file, which are compared.

#include <string>
#include <vector>

#include "config.h"

namespace backend {

struct Model {
  // Errors: Failure with what was expected and found.
  explicit Model(TRITONBACKEND_Model* handle);

  // How requests run.
  enum class Way {
    kBatches,    // each by itself, several as entries of a batch; the server may keep states
    kSequences,  // each continues from the last one with the same correlation id
    kSignals     // each is a whole signal, which is cut into windows or blocks
  };

  Config config;
  std::string label;  // "model 'vad' version 1"
  uint64_t version = 0;
  treadle::Session session;
  Way way = Way::kBatches;
  treadle::Feeds bound;
  std::vector<std::string> fed;  // inputs that requests give, including controls
  bool finds_states = true;      // finds states by their names, in addition to those of parameter "state"

 private:
  Model(TRITONBACKEND_Model* handle, const Json& json);
  void check_batches();
  void check_streams();
  void check_stream_inputs(const Signature& signature);
  void check_stream_outputs(const Signature& signature, const treadle::Stream& stream) const;
  treadle::Stream open_stream();
};

// Options for making streams of the model.
treadle::StreamOptions stream_options(const Model& model);

}  // namespace backend
