#include "wire/serialize.h"

#include <algorithm>
#include <limits>
#include <protozero/pbf_writer.hpp>

namespace treadle::wire {

namespace {

using protozero::pbf_writer;

class FieldWriter {
 public:
  // `buffer` is the string that `out` writes to.
  FieldWriter(pbf_writer& out, std::string& buffer) : out_(out), buffer_(buffer) {}

  template <class T>
  void operator()(uint32_t number, std::string_view, const T& member) {
    write(number, member);
  }
  void unknown(const UnknownFields& fields) {
    fields.for_each([&](std::string_view run) { buffer_.append(run); });
  }

 private:
  void write(uint32_t number, std::string_view member) {
    if (member.data()) put(number, member);
  }
  template <class T>
  void write(uint32_t number, const Field<T>& member) {
    if (member.present()) put(number, member.get());
  }
  template <class T>
  void write(uint32_t number, const std::optional<T>& member) {
    if (member) put(number, *member);
  }
  template <class T>
  void write(uint32_t number, T* const& member) {
    if (member) put(number, *member);
  }
  template <class T>
  void write(uint32_t number, const List<T>& member) {
    for (const T& value : member) put(number, value);
  }
  template <class T>
  void write(uint32_t number, const Runs<T>& member) {
    for (const Run& run : member.runs()) {
      if (run.packed) {
        put(number, run.bytes);
      } else {
        buffer_.append(run.bytes);
      }
    }
  }
  template <class Message>
  void write(uint32_t number, const Message& member) {
    put(number, member);
  }

  void put(uint32_t number, std::string_view value) { out_.add_bytes(number, value.data(), value.size()); }
  void put(uint32_t number, int64_t value) { out_.add_int64(number, value); }
  void put(uint32_t number, int32_t value) { out_.add_int32(number, value); }
  void put(uint32_t number, float value) { out_.add_float(number, value); }
  template <class Message>
  void put(uint32_t number, const Message& message) {
    const size_t before = buffer_.size();
    {
      pbf_writer inside(out_, number);
      FieldWriter writer(inside, buffer_);
      Message::fields(message, writer);
      writer.unknown(message.unknown);
    }
    // protozero drops empty messages. But an empty shape is that of a scalar, and an absent one means unknown rank.
    if (buffer_.size() == before) out_.add_message(number, "", 0);
  }

  pbf_writer& out_;
  std::string& buffer_;
};

// Adds up texts and data of a message. This is a lower bound of its size: protozero must not be asked to write more
// than it can.
class SizeCounter {
 public:
  size_t bytes = 0;

  template <class T>
  void operator()(uint32_t, std::string_view, const T& member) {
    count(member);
  }

 private:
  void count(std::string_view member) { bytes += member.size(); }
  void count(int64_t) { bytes += 1; }
  void count(float) { bytes += 4; }
  template <class T>
  void count(const Field<T>& member) {
    bytes += member.present() ? 1 : 0;
  }
  template <class T>
  void count(const std::optional<T>& member) {
    if (member) count(*member);
  }
  template <class T>
  void count(T* const& member) {
    if (member) count(*member);
  }
  template <class T>
  void count(const List<T>& member) {
    for (const T& value : member) count(value);
  }
  template <class T>
  void count(const Runs<T>& member) {
    for (const Run& run : member.runs()) bytes += run.bytes.size();
  }
  template <class Message>
    requires std::is_class_v<Message>
  void count(const Message& message) {
    Message::fields(message, *this);
    message.unknown.for_each([&](std::string_view run) { bytes += run.size(); });
  }
};

// Passes on the fields that are not left out.
template <class Inner>
class Filter {
 public:
  Filter(Inner& inner, std::span<const uint32_t> left_out) : inner_(inner), left_out_(left_out) {}

  template <class T>
  void operator()(uint32_t number, std::string_view name, const T& member) {
    if (std::ranges::find(left_out_, number) == left_out_.end()) inner_(number, name, member);
  }

 private:
  Inner& inner_;
  std::span<const uint32_t> left_out_;
};

}  // namespace

template <class Message>
Result<std::string> serialize(const Message& message, std::span<const uint32_t> left_out) {
  constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();
  SizeCounter counter;
  Filter counted(counter, left_out);
  Message::fields(message, counted);
  std::string buffer;
  if (counter.bytes <= kMaxBytes) {
    buffer.reserve(counter.bytes + counter.bytes / 8 + 64);
    pbf_writer out(buffer);
    FieldWriter writer(out, buffer);
    Filter written(writer, left_out);
    Message::fields(message, written);
    writer.unknown(message.unknown);
    if (buffer.size() <= kMaxBytes) return buffer;
  }
  return error(Code::kLimit, "the message takes more than {} bytes, which is what protobuf allows", kMaxBytes);
}

#define TREADLE_SERIALIZE(Message) \
  template Result<std::string> serialize(const Message&, std::span<const uint32_t> left_out);
TREADLE_SERIALIZE(ModelProto)
TREADLE_SERIALIZE(GraphProto)
TREADLE_SERIALIZE(FunctionProto)
TREADLE_SERIALIZE(NodeProto)
TREADLE_SERIALIZE(AttributeProto)
TREADLE_SERIALIZE(ValueInfoProto)
TREADLE_SERIALIZE(TensorProto)
TREADLE_SERIALIZE(SparseTensorProto)
TREADLE_SERIALIZE(SequenceProto)
TREADLE_SERIALIZE(OptionalProto)
TREADLE_SERIALIZE(MapProto)
TREADLE_SERIALIZE(TypeProto)
#undef TREADLE_SERIALIZE

}  // namespace treadle::wire
