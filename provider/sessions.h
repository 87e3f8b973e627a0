// treadle's sessions for claims. A session is opened when the nodes are claimed, to be sure that treadle takes them,
// and used if onnxruntime accepts the claim.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "settings.h"

namespace treadle::provider {

using Session = std::shared_ptr<treadle_session>;

class Sessions {
 public:
  explicit Sessions(const Settings& settings) : settings_(settings) {}

  // Throws treadle's error if it refuses the model. The same model gives the same session.
  Session open(const std::string& model);
  // The same for a caller that keeps the session.
  Session take(const std::string& model);
  // Closes unused sessions.
  void forget() { opened_.clear(); }

 private:
  // A model is identified by its length and a hash: its bytes would be a copy of all weights.
  using Key = std::pair<size_t, size_t>;
  static Key key_of(const std::string& model) { return {model.size(), std::hash<std::string>{}(model)}; }

  const Settings& settings_;
  std::map<Key, Session> opened_;
  std::map<Key, Failure> refused_;
};

}  // namespace treadle::provider
