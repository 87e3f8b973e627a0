#pragma once
// The server tells a model's configuration as JSON.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triton_api.h"

namespace backend {

class Json {
 public:
  // Errors: InvalidArgument, with the byte where `text` is no JSON.
  static Json parse(std::string_view text);

  // Of an object; a name that it lacks gives null, as does anything that is no object.
  const Json& operator[](std::string_view name) const;
  bool has(std::string_view name) const { return (*this)[name].kind_ != Kind::kNull; }
  const std::vector<Json>& items() const { return items_; }  // of an array
  const std::vector<std::pair<std::string, Json>>& members() const { return members_; }
  // Texts as they are, numbers and truth values as they are written; "" of anything else.
  const std::string& text() const { return text_; }
  // Numbers, also as texts: protobuf writes those of 64 bits so. Anything else gives `otherwise`.
  int64_t integer(int64_t otherwise = 0) const;
  bool truth() const { return text_ == "true"; }

 private:
  friend class JsonReader;
  enum class Kind { kNull, kScalar, kArray, kObject };
  Kind kind_ = Kind::kNull;
  std::string text_;
  std::vector<Json> items_;
  std::vector<std::pair<std::string, Json>> members_;
};

// What a message of the server says, which stays whose it is.
Json json_of(TRITONSERVER_Message* message);

}  // namespace backend
