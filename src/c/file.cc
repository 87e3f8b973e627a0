#include "c/file.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "c/types.h"
#include "type/shape.h"

namespace treadle::c {

namespace {

// The errors that a run returns, by the numbers of KernelError; those behind 100 are a stream's own.
struct ErrorCode {
  std::string_view name;
  int number;
  std::string_view meaning;
};
constexpr int kOfStreams = 101;
constexpr ErrorCode kErrors[] = {
    {"DIVISION_BY_ZERO", 1, "an integer was divided by zero"},
    {"INDEX_OUT_OF_RANGE", 2, "an index lies outside of its axis"},
    {"NEGATIVE_EXPONENT", 3, "an exponent is negative"},
    {"INVALID_VALUE", 4, "a value is not allowed where it is used"},
    {"SEQUENCE_LENGTH", 6, "a length exceeds the sequence"},
    {"STREAM_ENDED", kOfStreams, "the signal has ended: begin the stream anew"},
    {"TOO_FEW_SAMPLES", 102, "the signal ended before the first run had its samples"},
};

}  // namespace

std::string File::table(std::string_view name, ElementType type, const void* elements, size_t count) {
  const auto* from = static_cast<const std::byte*>(elements);
  const size_t width = byte_width(type);
  std::string key(stored(type));
  key += ':';
  if (count > 0) key.append(static_cast<const char*>(elements), count * width);
  if (const auto known = table_of_.find(key); known != table_of_.end()) return known->second;
  std::string made = names_.add(fmt::format("{}_{}", prefix(), identifier(name)));
  // Vectors of long tables lie within lines of a cache.
  const bool aligned = count * byte_width(type) >= 256;
  std::string text =
      fmt::format("static const {}{} {}[{}] = {{", aligned ? "_Alignas(64) " : "", stored(type), made, count);
  size_t column = text.size();
  if (count > 8) text += "\n   ", column = 3;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = literal(type, from + i * width);
    if (column + number.size() + 2 > 110) text += "\n   ", column = 3;
    text += (count > 8 || i > 0 ? " " : "") + number + (i + 1 < count ? "," : "");
    column += number.size() + 2;
  }
  text += count > 8 ? "\n};\n" : "};\n";
  tables_ += text;
  return table_of_.emplace(std::move(key), std::move(made)).first->second;
}

std::string File::constant(std::string_view name, ElementType type, const void* elements, size_t count) {
  const size_t bytes = count * byte_width(type);
  if (!options_.weights_apart || bytes < kLeastWeight) return table(name, type, elements, count);
  const std::string_view contents(static_cast<const char*>(elements), bytes);
  auto known = place_of_.find(contents);
  if (known == place_of_.end()) {
    weights_.resize(aligned(weights_.size()));
    known = place_of_.emplace(contents, weights_.size()).first;
    weights_ += contents;
  }
  return fmt::format("((const {} *)(const void *)(weights + {}))", stored(type), known->second);
}

std::vector<std::string> member_names(const std::vector<std::string>& own) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const std::string& given : own) {
    std::string name = identifier(given);
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", identifier(given), i);
    names.push_back(std::move(name));
  }
  return names;
}

void write_structure(Text& text, const File& file, std::string_view kind, std::string_view qualifier,
                     const std::vector<Member>& members) {
  text.open("typedef struct {}_{}", file.prefix(), kind);
  bool any = false;
  for (const Member& member : members) {
    any |= member.is_used;
    if (!member.is_used) {
      text.line("/* \"{}\" has no influence. */", in_comment(member.own));
      continue;
    }
    const ElementType type = member.type.element;
    const std::string_view how = !is_sub_byte(type)        ? ""
                                 : is_signed_integer(type) ? ", one in each byte, with its sign"
                                                           : ", one in the low bits of each byte";
    text.line("{}{} *{}; /* \"{}\": {}, {} elements{} */", qualifier, stored(type), member.name, in_comment(member.own),
              in_comment(member.type.to_string()), known_element_count(member.type.shape), how);
  }
  if (!any) text.line("char none;");
  text.close(fmt::format(" {}_{};", file.prefix(), kind));
  text.blank();
}

Status refused(const std::vector<Refusal>& refusals) {
  std::string list;
  constexpr size_t kMost = 20;
  for (size_t i = 0; i < std::min(refusals.size(), kMost); ++i) {
    list += fmt::format("\n  {}: {}", refusals[i].node, refusals[i].reason);
  }
  if (refusals.size() > kMost) list += fmt::format("\n  and {} more", refusals.size() - kMost);
  return error(Code::kNotImplemented, "the model cannot be written as C:{}", list);
}

void File::open_header(Text& text, size_t scratch, std::string_view runs, bool ends) const {
  text.line("#ifndef {}_H", upper_);
  text.line("#define {}_H", upper_);
  text.blank();
  text.line("#include <stddef.h>");
  text.line("#include <stdint.h>");
  text.blank();
  text.line("#ifdef __cplusplus");
  text.line("extern \"C\" {{");
  text.line("#endif");
  text.blank();
  text.line("/* Bytes of memory that a {0} works in. Nothing is kept there from {0} to {0}. */", runs);
  text.line("#define {}_SCRATCH_BYTES {}", upper_, std::max<size_t>(scratch, 1));
  text.blank();
  if (options_.weights_apart) {
    text.line("/* Bytes of constants that a {} reads: the contents of a file, aligned to 64 bytes. */", runs);
    text.line("#define {}_WEIGHTS_BYTES {}", upper_, weights_.size());
    text.blank();
  }
  text.line("/* What {}_{} returns. */", prefix(), runs);
  text.open("enum");
  text.line("{}_OK = 0,", upper_);
  for (const ErrorCode& code : kErrors) {
    if (code.number >= kOfStreams && !ends) continue;
    text.line("{}_{} = {}, /* {} */", upper_, code.name, code.number, code.meaning);
  }
  text.close(";");
  text.blank();
}

void File::close_header(Text& text) {
  text.blank();
  text.line("#ifdef __cplusplus");
  text.line("}}");
  text.line("#endif");
  text.blank();
  text.line("#endif");
}

std::string File::source(std::string_view code) const {
  std::string functions = functions_.str();
  constexpr std::string_view kInline = "static inline ";
  const std::string marked = fmt::format("static {}_UNUSED inline ", upper_);
  for (size_t at = functions.find(kInline); at != std::string::npos; at = functions.find(kInline, at + marked.size())) {
    functions.replace(at, kInline.size(), marked);
  }
  Text text;
  text.line("#include \"{}.h\"", prefix());
  text.blank();
  text.line("#include <string.h>");
  if (functions_.calls_libm()) text.line("#include <math.h>");
  text.blank();
  if (options_.weights_apart) {
    text.line("#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__");
    text.line("#error \"the weights are little-endian\"");
    text.line("#endif");
    text.blank();
  }
  text.line("/* Products and sums round as they are written. */");
  text.line("#if defined(__clang__)");
  text.line("#pragma STDC FP_CONTRACT OFF");
  text.line("#pragma clang diagnostic ignored \"-Wpass-failed\" /* not all loops become vectors */");
  text.line("#elif defined(__GNUC__)");
  // Nobody asks for traps; with them gcc keeps branches in loops that choose between floats.
  text.line("#pragma GCC optimize(\"fp-contract=off\", \"no-trapping-math\")");
  text.line("#endif");
  text.line("#if defined(__GNUC__)");
  text.line("#define {}_UNUSED __attribute__((unused))", upper_);
  text.line("#else");
  text.line("#define {}_UNUSED", upper_);
  text.line("#endif");
  text.line("/* Iterations of the loop that follows do not depend on each other. */");
  text.line("#if defined(__clang__)");
  text.line("#define {}_INDEPENDENT _Pragma(\"clang loop vectorize(assume_safety)\")", upper_);
  text.line("#elif defined(__GNUC__)");
  text.line("#define {}_INDEPENDENT _Pragma(\"GCC ivdep\")", upper_);
  text.line("#else");
  text.line("#define {}_INDEPENDENT", upper_);
  text.line("#endif");
  text.blank();
  return text.str() + functions + tables_ + std::string(code);
}

}  // namespace treadle::c
