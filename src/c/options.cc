#include "c/options.h"

#include <charconv>

#include "c/names.h"

namespace treadle::c {

namespace {

Result<bool> read_switch(std::string_view name, std::string_view value) {
  if (value == "0" || value == "1") return value == "1";
  return error(Code::kInvalidArgument, "{}: expected 0 or 1, found '{}'", name, value);
}

}  // namespace

Status read_option(std::string_view option, Options& options, std::vector<std::pair<std::string, int64_t>>& sizes) {
  const size_t equals = std::min(option.find('='), option.size());
  const std::string_view name = option.substr(0, equals);
  const std::string_view value = option.substr(std::min(equals + 1, option.size()));
  if (name == "prefix") {
    if (identifier(value) != value) {
      return error(Code::kInvalidArgument, "prefix: expected an identifier of C, found '{}'", value);
    }
    options.prefix = value;
  } else if (name == "fma") {
    TREADLE_ASSIGN(const bool fuses, read_switch(name, value));
    options.isa = fuses ? Isa::kAvx2 : Isa::kBaseline;
  } else if (name == "libm") {
    TREADLE_ASSIGN(options.libm, read_switch(name, value));
  } else if (name == "dim") {
    const size_t split = value.rfind('=');
    int64_t size = -1;
    if (split != std::string_view::npos) {
      const std::string_view number = value.substr(split + 1);
      const auto read = std::from_chars(number.data(), number.data() + number.size(), size);
      if (read.ec != std::errc() || read.ptr != number.data() + number.size()) size = -1;
    }
    if (split == 0 || size < 0) {
      return error(Code::kInvalidArgument, "dim: expected NAME=SIZE, found '{}'", value);
    }
    sizes.emplace_back(value.substr(0, split), size);
  } else {
    return error(Code::kInvalidArgument, "expected prefix, dim, fma or libm, found '{}'", option);
  }
  return {};
}

}  // namespace treadle::c
