// Snapshots of streams. A snapshot begins with a line that names the format. Then come the stream's text, which errors
// show, and the numbers of its identity (a stream of another identity refuses the snapshot), then numbers and values.
// Each value is the length of its protobuf message, then the message.

#include <algorithm>
#include <bit>
#include <cstring>

#include "model/value_file.h"
#include "stream/identity.h"
#include "stream/layout.h"
#include "stream/stream.h"
#include "wire/mapped_file.h"

namespace treadle {

namespace {

constexpr std::string_view kFormat = "treadle stream ", kMagic = "treadle stream 4\n";
static_assert(std::endian::native == std::endian::little, "snapshots are little-endian");

class Writer {
 public:
  void number(int64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void identity(const StreamIdentity& identity) {
    const auto& [graph, weights, roles, bound, found] = identity;
    for (const uint64_t one : {graph, weights, roles, bound, found}) number(static_cast<int64_t>(one));
  }
  void text(std::string_view text) {
    number(static_cast<int64_t>(text.size()));
    out_ += text;
  }
  // An absent value has length -1.
  Status value(const AnyValue& value) {
    if (value.is_none() || (value.is_tensor() && !value.tensor().defined())) {
      number(-1);
      return {};
    }
    TREADLE_ASSIGN(const std::string bytes, model::write_value(value));
    text(bytes);
    return {};
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_{kMagic};
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Status magic() {
    if (bytes_.substr(0, kFormat.size()) != kFormat)
      return error(Code::kInvalidFile, "this is no snapshot of a stream");
    if (bytes_.substr(0, kMagic.size()) != kMagic) {
      return error(Code::kInvalidFile, "the snapshot is of another format than this version of treadle reads (\"{}\")",
                   kMagic.substr(0, kMagic.size() - 1));
    }
    bytes_.remove_prefix(kMagic.size());
    return {};
  }
  Result<int64_t> number() {
    int64_t value = 0;
    if (bytes_.size() < sizeof value) return cut_off();
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  Result<StreamIdentity> identity() {
    StreamIdentity identity;
    auto& [graph, weights, roles, bound, found] = identity;
    for (uint64_t* one : {&graph, &weights, &roles, &bound, &found}) {
      TREADLE_ASSIGN(const int64_t read, number());
      *one = static_cast<uint64_t>(read);
    }
    return identity;
  }
  Result<std::string_view> text() {
    TREADLE_ASSIGN(const int64_t size, number());
    return bytes(size);
  }
  Result<AnyValue> value(const Type& type) {
    TREADLE_ASSIGN(const int64_t size, number());
    if (size == -1) return AnyValue();
    TREADLE_ASSIGN(const std::string_view data, bytes(size));
    return model::read_value(wire::MappedFile::own(std::string(data)), type);
  }
  Status end() const {
    if (!bytes_.empty()) return error(Code::kInvalidFile, "{} bytes too many in the snapshot", bytes_.size());
    return {};
  }

 private:
  static Status cut_off() { return error(Code::kInvalidFile, "the snapshot is cut off"); }
  Result<std::string_view> bytes(int64_t size) {
    if (size < 0 || static_cast<uint64_t>(size) > bytes_.size()) return cut_off();
    const std::string_view text = bytes_.substr(0, static_cast<size_t>(size));
    bytes_.remove_prefix(static_cast<size_t>(size));
    return text;
  }
  std::string_view bytes_;
};

Status check_tail(const StreamLayout& layout, size_t index, const Tensor& tail, int64_t pending) {
  const StreamLayout::Timed& timed = layout.timed[index];
  const bool fits = tail.type() == timed.input->type.element && tail.rank() > timed.axis &&
                    tail.dims()[static_cast<size_t>(timed.axis)] == layout.context + pending;
  if (fits) return {};
  return error(Code::kInvalidFile, "the snapshot's samples of '{}' do not fit", timed.input->name);
}

}  // namespace

std::string Stream::to_string() const {
  std::string text = layout_->to_string();
  for (size_t i = 0; i < carried_.states.size(); ++i) {
    text += fmt::format("  now    {} is {}\n", state_name(i), carried_.states[i].type().to_string());
  }
  if (!carried_.tails.empty()) text += fmt::format("  {} samples wait\n", carried_.pending);
  return text + realtime_text();
}

Result<std::string> Stream::save() const {
  Writer writer;
  writer.text(layout_->to_string(false));
  writer.identity(layout_->identity);
  writer.number(carried_.pending);
  for (size_t i = 0; i < carried_.states.size(); ++i) {
    writer.number(carried_.is_initial[i]);
    TREADLE_TRY(writer.value(carried_.states[i]).in(state_name(i)));
  }
  for (const Tensor& tail : carried_.tails) TREADLE_TRY(writer.value(AnyValue(tail)));
  writer.number(carried_.begun);
  writer.number(carried_.ended);
  writer.number(static_cast<int64_t>(carried_.found.size()));
  for (size_t i = 0; i < carried_.found.size(); ++i) {
    TREADLE_TRY(writer.value(carried_.found[i]).in(layout_->over_time->states[i]));
  }
  return writer.take();
}

// Loads the states that a stream over time found in its model.
template <class Source>
Status Stream::load_found(Source& reader) {
  TREADLE_ASSIGN(const int64_t count, reader.number());
  const OverTime* over_time = layout_->over_time.get();
  const size_t expected = over_time && carried_.begun ? over_time->states.size() : 0;
  if (count < 0 || static_cast<size_t>(count) > (over_time ? over_time->states.size() : 0) ||
      (!carried_.ended && static_cast<size_t>(count) != expected)) {
    return error(Code::kInvalidFile, "the snapshot holds {} found states, expected {}", count, expected);
  }
  for (int64_t i = 0; i < count; ++i) {
    const std::string& name = over_time->states[static_cast<size_t>(i)];
    const auto inputs = over_time->steady->inputs();
    const auto input =
        std::find_if(inputs.begin(), inputs.end(), [&](const IoInfo& info) { return info.name == name; });
    TREADLE_ASSIGN(AnyValue value, reader.value(input->type));
    if (value.is_none()) return error(Code::kInvalidFile, "the snapshot lacks state '{}'", name);
    carried_.found.push_back(std::move(value));
  }
  return {};
}

Status Stream::load(std::string_view snapshot, bool other_weights) {
  Reader reader(snapshot);
  TREADLE_TRY(reader.magic());
  TREADLE_ASSIGN(const std::string_view text, reader.text());
  TREADLE_ASSIGN(const StreamIdentity identity, reader.identity());
  TREADLE_TRY(check_same(layout_->identity, layout_->to_string(false), identity, text, "the snapshot", other_weights));
  Stream loaded(layout_);
  TREADLE_TRY(loaded.reset());
  TREADLE_ASSIGN(loaded.carried_.pending, reader.number());
  for (size_t i = 0; i < loaded.carried_.states.size(); ++i) {
    TREADLE_ASSIGN(const int64_t is_initial, reader.number());
    loaded.carried_.is_initial[i] = is_initial != 0;
    TREADLE_ASSIGN(loaded.carried_.states[i], reader.value(layout_->states[i].input->type));
  }
  for (size_t i = 0; i < loaded.carried_.tails.size(); ++i) {
    TREADLE_ASSIGN(AnyValue tail, reader.value(Type::tensor(layout_->timed[i].input->type.element)));
    if (tail.is_none() && loaded.carried_.pending == 0) continue;
    if (!tail.is_tensor()) return error(Code::kInvalidFile, "the snapshot lacks samples");
    TREADLE_TRY(check_tail(*layout_, i, tail.tensor(), loaded.carried_.pending));
    loaded.carried_.tails[i] = tail.tensor();
  }
  TREADLE_ASSIGN(const int64_t begun, reader.number());
  TREADLE_ASSIGN(const int64_t ended, reader.number());
  loaded.carried_.begun = begun != 0;
  const std::vector<Tensor>& tails = loaded.carried_.tails;
  if (begun != 0 && std::any_of(tails.begin(), tails.end(), [](const Tensor& tail) { return !tail.defined(); })) {
    return error(Code::kInvalidFile, "the snapshot lacks samples");
  }
  loaded.carried_.ended = ended != 0;
  TREADLE_TRY(loaded.load_found(reader));
  TREADLE_TRY(reader.end());
  loaded.push_.set_bound(push_.bound());
  *this = std::move(loaded);
  return {};
}

}  // namespace treadle
