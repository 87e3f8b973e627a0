#include "wire/parse.h"

#include <algorithm>

#include "wire/devices.h"
#include "wire/training.h"

namespace treadle::wire {

namespace {

template <class Message>
void read_message(Cursor& in, Message& message);

// Offered every field of a message in turn; takes the one whose number is the current field's.
class FieldReader {
 public:
  explicit FieldReader(Cursor& in) : in_(in) {}
  bool taken() const { return taken_; }

  // Inline, so that finding a message's field is a row of comparisons.
  template <class T>
  [[gnu::always_inline]] void operator()(uint32_t number, std::string_view name, T& member) {
    if (number == in_.field()) take(name, member);
  }

 private:
  template <class T>
  [[gnu::noinline]] void take(std::string_view name, T& member) {
    taken_ = true;
    in_.set_name(name);
    read(name, member);
  }
  void read(std::string_view, std::string_view& member) { member = in_.bytes(); }
  void read(std::string_view, int64_t& member) { member = static_cast<int64_t>(in_.varint()); }
  void read(std::string_view, int32_t& member) { member = static_cast<int32_t>(in_.varint()); }
  void read(std::string_view, float& member) { member = in_.fixed32(); }
  template <class T>
  void read(std::string_view name, Field<T>& member) {
    T value{};
    read(name, value);
    member = value;
  }
  template <class T>
  void read(std::string_view, Runs<T>& member) {
    member.read(in_);
  }
  template <class T>
  void read(std::string_view name, std::optional<T>& member) {
    if (!member) member.emplace();
    read(name, *member);
  }
  template <class T>
  void read(std::string_view name, std::unique_ptr<T>& member) {
    if (!member) {
      if (!in_.document().charge(in_, sizeof(T))) return;
      member = std::make_unique<T>();
    }
    read(name, *member);
  }
  template <class T>
  void read(std::string_view name, std::vector<T>& member) {
    if constexpr (std::is_arithmetic_v<T>) {
      if (in_.wire_type() == WireType::kBytes) {
        in_.set_name(name, member.size());
        return read_packed(member);
      }
    }
    do {
      in_.set_name(name, member.size());
      if (!in_.document().charge(in_, sizeof(T))) return;
      if (member.size() == member.capacity()) make_room(member);
      read(name, member.emplace_back());
    } while (in_.next_alike());
  }
  // For all that follow, so that nothing is moved later: texts and numbers stand in a row, messages anywhere. The first
  // messages are not worth the look.
  template <class T>
  void make_room(std::vector<T>& member) {
    constexpr bool kIsMessage = std::is_class_v<T> && !std::is_same_v<T, std::string_view>;
    constexpr size_t kFewMessages = 4;
    if (kIsMessage && member.size() < kFewMessages) return;
    const size_t count = std::max(in_.count_rest(!kIsMessage), member.size());
    if (in_.document().affordable(count * sizeof(T))) member.reserve(member.size() + count);
  }
  template <class T>
  void read_packed(std::vector<T>& member) {
    Runs<T> block;
    block.read(in_);
    size_t count = 0;
    if (!block.count(count))
      return in_.fail(Code::kInvalidFile, "a packed integer is cut off or longer than ten bytes");
    if (!in_.document().charge(in_, count * sizeof(T))) return;
    member.reserve(member.size() + count);
    block.for_each([&](T value) { member.push_back(value); });
  }
  template <class Message>
  void read(std::string_view, Message& member) {
    Cursor inside(in_, in_.bytes());
    read_message(inside, member);
  }

  Cursor& in_;
  bool taken_ = false;
};

template <class Message>
void read_message(Cursor& in, Message& message) {
  if (in.too_deep()) {
    return in.fail(Code::kLimit, fmt::format("messages are nested more than {} deep", in.document().limits().depth));
  }
  while (in.next()) {
    FieldReader reader(in);
    Message::fields(message, reader);
    if (reader.taken()) continue;
    in.skip();
    if (!in.document().ok() || !in.document().charge(in, sizeof(std::string_view))) return;
    message.unknown.add({in.field_begin(), static_cast<size_t>(in.position() - in.field_begin())});
  }
}

}  // namespace

template <class Message>
Status merge(std::string_view bytes, Message& message, Limits limits) {
  Document document(bytes, limits);
  Cursor cursor(document);
  read_message(cursor, message);
  return document.ok() ? Status() : document.take_status();
}

#define TREADLE_MERGE(Message) template Status merge(std::string_view, Message&, Limits);
TREADLE_MERGE(ModelProto)
TREADLE_MERGE(GraphProto)
TREADLE_MERGE(FunctionProto)
TREADLE_MERGE(NodeProto)
TREADLE_MERGE(AttributeProto)
TREADLE_MERGE(ValueInfoProto)
TREADLE_MERGE(TensorProto)
TREADLE_MERGE(SparseTensorProto)
TREADLE_MERGE(TypeProto)
#undef TREADLE_MERGE

namespace {

template <class Message>
Result<Message> parse(std::string_view bytes, Limits limits) {
  Message message;
  TREADLE_TRY(merge(bytes, message, limits));
  return Result<Message>(std::move(message));
}

}  // namespace

Result<ModelProto> parse_model(std::string_view bytes, Limits limits) {
  if (bytes.empty()) return error(Code::kInvalidFile, "expected an ONNX model, found an empty file");
  return parse<ModelProto>(bytes, limits);
}

Result<TensorProto> parse_tensor(std::string_view bytes, Limits limits) {
  return parse<TensorProto>(bytes, limits);
}

Result<SparseTensorProto> parse_sparse_tensor(std::string_view bytes, Limits limits) {
  return parse<SparseTensorProto>(bytes, limits);
}

Result<SequenceProto> parse_sequence(std::string_view bytes, Limits limits) {
  return parse<SequenceProto>(bytes, limits);
}

Result<OptionalProto> parse_optional(std::string_view bytes, Limits limits) {
  return parse<OptionalProto>(bytes, limits);
}

Result<MapProto> parse_map(std::string_view bytes, Limits limits) {
  return parse<MapProto>(bytes, limits);
}

Result<TypeProto> parse_type(std::string_view bytes, Limits limits) {
  return parse<TypeProto>(bytes, limits);
}

Result<TrainingInfoProto> parse_training_info(std::string_view bytes, Limits limits) {
  return parse<TrainingInfoProto>(bytes, limits);
}

Result<DeviceConfigurationProto> parse_device_configuration(std::string_view bytes, Limits limits) {
  return parse<DeviceConfigurationProto>(bytes, limits);
}

Result<NodeDeviceConfiguration> parse_node_device_configuration(std::string_view bytes, Limits limits) {
  return parse<NodeDeviceConfiguration>(bytes, limits);
}

}  // namespace treadle::wire
