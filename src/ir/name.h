#pragma once
// The name of a value or node. It owns its characters, or borrows them from memory that outlives it (the graph's
// arena).

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace treadle::ir {

// A copy owns its characters, so it may outlive the graph. Moving keeps borrowed ones.
class Name {
 public:
  Name() = default;
  Name(std::string_view text) { own(text); }                       // NOLINT(google-explicit-constructor)
  Name(const std::string& text) : Name(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)
  Name(const char* text) : Name(std::string_view(text)) {}         // NOLINT(google-explicit-constructor)
  static Name borrow(std::string_view text) {
    Name name;
    name.data_ = text.data();
    name.size_ = text.size();
    return name;
  }
  Name(const Name& other) { own(other); }
  Name(Name&& other) noexcept { swap(other); }
  Name& operator=(const Name& other) {
    Name copy(other);
    swap(copy);
    return *this;
  }
  Name& operator=(Name&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Name() {
    if (owned_) delete[] data_;
  }

  operator std::string_view() const { return {data_, size_}; }        // NOLINT(google-explicit-constructor)
  operator std::string() const { return std::string(data_, size_); }  // NOLINT(google-explicit-constructor)
  std::string_view view() const { return {data_, size_}; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const char* begin() const { return data_; }
  const char* end() const { return data_ + size_; }

  friend bool operator==(const Name& a, const Name& b) { return a.view() == b.view(); }
  friend bool operator==(const Name& a, std::string_view b) { return a.view() == b; }
  friend bool operator==(const Name& a, const std::string& b) { return a.view() == b; }
  friend bool operator==(const Name& a, const char* b) { return a.view() == b; }
  friend bool operator<(const Name& a, const Name& b) { return a.view() < b.view(); }
  friend std::string operator+(const Name& a, std::string_view b) { return std::string(a).append(b); }
  friend std::string operator+(std::string_view a, const Name& b) { return std::string(a).append(b.view()); }

 private:
  void own(std::string_view text) {
    if (text.empty()) return;
    char* copy = new char[text.size()];
    std::memcpy(copy, text.data(), text.size());
    data_ = copy;
    size_ = text.size();
    owned_ = true;
  }
  void swap(Name& other) noexcept {
    std::swap(data_, other.data_);
    const size_t size = size_;
    const bool owned = owned_;
    size_ = other.size_;
    owned_ = other.owned_;
    other.size_ = size;
    other.owned_ = owned;
  }

  const char* data_ = "";
  size_t size_ : 63 = 0;
  size_t owned_ : 1 = 0;
};

}  // namespace treadle::ir

// Written by hand: fmt::formatter<fmt::string_view> would make every file that formats a name include fmt/format.h.
template <>
struct fmt::formatter<treadle::ir::Name> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const treadle::ir::Name& name, Context& context) const {
    return std::copy(name.data(), name.data() + name.size(), context.out());
  }
};
