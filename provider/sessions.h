// treadle's sessions of claimed nodes. A session is opened when the nodes are claimed, so that a claim is sure, and
// used when onnxruntime has accepted the claim.
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

  // Throws what treadle says about a model that it does not take. The same model gives the same session.
  Session open(const std::string& model);
  // The same for a caller who keeps it and asks once.
  Session take(const std::string& model);
  // What nobody uses is closed.
  void forget() { opened_.clear(); }

 private:
  // A model is told by its length and a hash: its bytes are a copy of all weights.
  using Key = std::pair<size_t, size_t>;
  static Key key_of(const std::string& model) { return {model.size(), std::hash<std::string>{}(model)}; }

  const Settings& settings_;
  std::map<Key, Session> opened_;
  std::map<Key, Failure> refused_;
};

}  // namespace treadle::provider
