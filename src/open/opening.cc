#include "open/opening.h"

#include <charconv>

namespace treadle::open {

namespace {

Status wrong_form(std::string_view text) {
  return error(Code::kInvalidArgument, "'{}' opens nothing, expected INPUT:AXIS=SYMBOL, such as frames:0=batch", text);
}

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<Opening> read_opening(std::string_view text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos) return wrong_form(text);
  const std::string_view place = text.substr(0, equals), symbol = text.substr(equals + 1);
  const size_t colon = place.rfind(':');  // names of inputs may hold colons
  if (colon == std::string_view::npos || colon == 0) return wrong_form(text);
  const auto axis = number(place.substr(colon + 1));
  if (!axis || symbol.empty()) return wrong_form(text);
  if (number(symbol)) {
    return error(Code::kInvalidArgument, "'{}' names a size {}, expected a word such as batch", text, symbol);
  }
  return Opening{std::string(place.substr(0, colon)), *axis, std::string(symbol)};
}

Openings::Openings(std::span<const Opening> all) : all_(all) {
  for (const Opening& opening : all) old_.emplace(opening.symbol, opening.size);
}

bool Openings::opens(const Dim& dim) const {
  const bool depends =
      std::ranges::any_of(all_, [&](const Opening& opening) { return depends_on(dim, opening.symbol); });
  return depends && !same(at(dim), at(dim, 2));
}

bool Openings::opens(const Shape& shape) const {
  return std::ranges::any_of(shape, [&](const Dim& dim) { return opens(dim); });
}

SymbolSizes Openings::sizes(int64_t times) const {
  SymbolSizes sizes = old_;
  for (auto& [symbol, size] : sizes) size *= times;
  return sizes;
}

Dim Openings::at(const Dim& dim, int64_t times) const {
  return with_sizes(dim, sizes(times));
}

std::optional<SizeOf> Openings::as_product(const Dim& dim) const {
  const Dim old = at(dim);
  if (!old.is_known()) return std::nullopt;
  for (const Opening& opening : all_) {
    if (opening.size == 0 || old.value() % opening.size != 0) continue;
    const SizeOf product = {old.value() / opening.size, &opening};
    if (same(Dim::symbol(opening.symbol) * product.factor, dim)) return product;
  }
  return std::nullopt;
}

const Opening* Openings::only_of_size(int64_t size) const {
  const Opening* found = nullptr;
  for (const Opening& opening : all_) {
    if (opening.size != size) continue;
    if (found && found->symbol != opening.symbol) return nullptr;
    found = &opening;
  }
  return found;
}

std::string Openings::symbols() const {
  std::string text;
  for (const auto& [symbol, size] : old_) text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", symbol);
  return text;
}

std::string Obstacle::text() const {
  return fmt::format("{} ({}): {}", path, op, why);
}

}  // namespace treadle::open
