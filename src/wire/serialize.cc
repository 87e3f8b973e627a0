#include "wire/serialize.h"

#include <limits>
#include <protozero/pbf_writer.hpp>

namespace treadle::wire {

namespace {

using protozero::pbf_writer;

class FieldWriter {
 public:
  // `buffer` is what `out` writes to.
  FieldWriter(pbf_writer& out, std::string& buffer) : out_(out), buffer_(buffer) {}

  template <class T>
  void operator()(uint32_t number, std::string_view, const T& member) {
    write(number, member);
  }

 private:
  // Singular fields: only what differs from the default.
  void write(uint32_t number, std::string_view member) {
    if (!member.empty()) put(number, member);
  }
  void write(uint32_t number, int64_t member) {
    if (member != 0) put(number, member);
  }
  void write(uint32_t number, int32_t member) {
    if (member != 0) put(number, member);
  }
  template <class T>
  void write(uint32_t number, const std::optional<T>& member) {
    if (member) put(number, *member);
  }
  template <class T>
  void write(uint32_t number, const std::unique_ptr<T>& member) {
    if (member) put(number, *member);
  }
  template <class T>
  void write(uint32_t number, const std::vector<T>& member) {
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
    }
    // protozero drops empty messages, but an empty shape is that of a scalar, while none means an unknown rank.
    if (buffer_.size() == before) out_.add_message(number, "", 0);
  }

  pbf_writer& out_;
  std::string& buffer_;
};

// Bytes of text and data in a message, a lower bound of its size: protozero must not be asked for more than it can do.
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
  void count(int32_t) { bytes += 1; }
  void count(float) { bytes += 4; }
  template <class T>
  void count(const std::optional<T>& member) {
    if (member) count(*member);
  }
  template <class T>
  void count(const std::unique_ptr<T>& member) {
    if (member) count(*member);
  }
  template <class T>
  void count(const std::vector<T>& member) {
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
  }
};

template <class Message>
Result<std::string> serialize_message(const Message& message) {
  constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();
  SizeCounter counter;
  Message::fields(message, counter);
  std::string buffer;
  if (counter.bytes <= kMaxBytes) {
    buffer.reserve(counter.bytes + counter.bytes / 8 + 64);
    pbf_writer out(buffer);
    FieldWriter writer(out, buffer);
    Message::fields(message, writer);
    if (buffer.size() <= kMaxBytes) return buffer;
  }
  return error(Code::kLimit, "the message takes more than {} bytes, which is what protobuf allows", kMaxBytes);
}

}  // namespace

Result<std::string> serialize(const ModelProto& message) {
  return serialize_message(message);
}

Result<std::string> serialize(const TensorProto& message) {
  return serialize_message(message);
}

Result<std::string> serialize(const SequenceProto& message) {
  return serialize_message(message);
}

Result<std::string> serialize(const OptionalProto& message) {
  return serialize_message(message);
}

Result<std::string> serialize(const MapProto& message) {
  return serialize_message(message);
}

Result<std::string> serialize(const TypeProto& message) {
  return serialize_message(message);
}

}  // namespace treadle::wire
