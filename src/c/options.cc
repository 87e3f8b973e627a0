#include "c/options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "c/names.h"

namespace treadle::c {

namespace {

Result<bool> read_switch(std::string_view name, std::string_view value) {
  if (value == "0" || value == "1") return value == "1";
  return error(Code::kInvalidArgument, "{}: expected 0 or 1, found '{}'", name, value);
}

std::optional<int64_t> read_size(std::string_view text) {
  int64_t size = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), size);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || size < 0) return std::nullopt;
  return size;
}

Status read_option(std::string_view option, bool of_stream, Asked& asked) {
  const size_t equals = std::min(option.find('='), option.size());
  const std::string_view name = option.substr(0, equals);
  const std::string_view value = option.substr(std::min(equals + 1, option.size()));
  if (name == "prefix") {
    if (identifier(value) != value) {
      return error(Code::kInvalidArgument, "prefix: expected an identifier of C, found '{}'", value);
    }
    asked.options.prefix = value;
  } else if (name == "fma") {
    TREADLE_ASSIGN(const bool fuses, read_switch(name, value));
    asked.options.isa = fuses ? Isa::kAvx2 : Isa::kBaseline;
  } else if (name == "libm") {
    TREADLE_ASSIGN(asked.options.libm, read_switch(name, value));
  } else if (name == "weights") {
    if (value.empty()) return error(Code::kInvalidArgument, "weights: expected the name of a file");
    asked.weights = value;
    asked.options.weights_apart = true;
  } else if (name == "dim") {
    const size_t split = value.rfind('=');
    const std::optional<int64_t> size =
        split == std::string_view::npos ? std::nullopt : read_size(value.substr(split + 1));
    if (split == 0 || !size) return error(Code::kInvalidArgument, "dim: expected NAME=SIZE, found '{}'", value);
    asked.sizes.emplace_back(value.substr(0, split), *size);
  } else if (of_stream && name == "samples") {
    const std::optional<int64_t> samples = read_size(value);
    if (!samples || *samples == 0) {
      return error(Code::kInvalidArgument, "samples: expected a number above 0, found '{}'", value);
    }
    asked.samples = *samples;
  } else if (of_stream && name == "end") {
    TREADLE_ASSIGN(asked.ends, read_switch(name, value));
  } else {
    return error(Code::kInvalidArgument, "expected prefix, dim, fma, weights{}, found '{}'",
                 of_stream ? ", libm, samples or end" : " or libm", option);
  }
  return {};
}

}  // namespace

Result<Asked> read_options(std::span<const char* const> texts, bool of_stream) {
  Asked asked;
  for (const char* text : texts) TREADLE_TRY(read_option(text, of_stream, asked));
  return asked;
}

}  // namespace treadle::c
