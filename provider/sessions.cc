#include "sessions.h"

namespace treadle::provider {

Session Sessions::take(const std::string& model) {
  Session session = open(model);
  opened_.erase(key_of(model));
  return session;
}

Session Sessions::open(const std::string& model) {
  const Key key = key_of(model);
  if (const auto found = opened_.find(key); found != opened_.end()) return found->second;
  if (const auto found = refused_.find(key); found != refused_.end()) throw found->second;
  treadle_session* session = nullptr;
  try {
    check(treadle_session_from_bytes(model.data(), model.size(), nullptr, settings_.engine.get(), &session));
  } catch (const Failure& failure) {
    refused_.emplace(key, failure);
    throw;
  }
  return opened_.emplace(key, Session(session, treadle_session_free)).first->second;
}

}  // namespace treadle::provider
