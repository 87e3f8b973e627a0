#pragma once
// The server passes a model's configuration as JSON.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triton_api.h"

namespace backend {

class Json {
 public:
  // Errors: InvalidArgument, with the byte at which `text` is not JSON.
  static Json parse(std::string_view text);

  // A member of an object; null for a missing name, or for a value that is not an object.
  const Json& operator[](std::string_view name) const;
  bool has(std::string_view name) const { return (*this)[name].kind_ != Kind::kNull; }
  const std::vector<Json>& items() const { return items_; }  // of an array
  const std::vector<std::pair<std::string, Json>>& members() const { return members_; }
  // A text, or the spelling of a number or truth value; "" for anything else.
  const std::string& text() const { return text_; }
  // A number, also from a text: protobuf writes 64-bit numbers as texts. `otherwise` for anything else.
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

// The contents of a message of the server. The message is not freed.
Json json_of(TRITONSERVER_Message* message);

}  // namespace backend
