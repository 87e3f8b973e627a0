#include "wire/parse.h"

#include <algorithm>

#include "base/stack.h"
#include "wire/devices.h"
#include "wire/training.h"

namespace treadle::wire {

namespace {

template <class Message>
void read_message(Cursor& in, Message& message);

// Called for each field of a message in turn; reads the field whose number is the current one.
class FieldReader {
 public:
  explicit FieldReader(Cursor& in) : in_(in), number_(in.field()) {}
  bool taken() const { return taken_; }

  // Inlined with the reading of texts, which most fields are: finding a message's field becomes a row of comparisons.
  template <class T>
  [[gnu::always_inline]] void operator()(uint32_t number, std::string_view name, T& member) {
    if (number != number_) return;
    taken_ = true;
    if constexpr (std::is_same_v<T, std::string_view>) {
      member = in_.bytes();
      if (!in_.document().ok()) in_.document().failed_in(name);
    } else {
      take(in_, name.data(), member);
    }
  }

 private:
  // `name`: of the field, for errors.
  template <class T>
  [[gnu::noinline]] static void take(Cursor& in, const char* name, T& member) {
    read(in, member);
    if (!in.document().ok()) in.document().failed_in(name);
  }
  template <class T>
  [[gnu::noinline]] static void take(Cursor& in, const char* name, List<T>& member) {
    if constexpr (std::is_arithmetic_v<T>) {
      if (in.wire_type() == WireType::kBytes) {
        read_packed(in, member);
        if (!in.document().ok()) in.document().failed_in(name, member.size());
        return;
      }
    }
    if constexpr (std::is_same_v<T, std::string_view>) return take_texts(in, name, member);
    do {
      const size_t index = member.size();
      if (index < member.capacity() || make_room(in, member)) read(in, member.add_default());
      if (!in.document().ok()) return in.document().failed_in(name, index);
    } while (in.next_alike());
  }
  // Most lists have few texts, which are counted while reading.
  static void take_texts(Cursor& in, const char* name, List<std::string_view>& member) {
    constexpr size_t kFew = 8;
    std::string_view texts[kFew];
    bool more = true;
    while (more) {
      size_t count = 0;
      do {
        texts[count] = in.bytes();
        if (!in.document().ok()) return in.document().failed_in(name, member.size() + count);
        ++count;
        more = in.next_alike();
      } while (more && count < kFew);
      const size_t before = member.capacity(), wanted = member.size() + count;
      if (wanted > before) {
        const size_t room = before == 0 && !more ? wanted : std::max(wanted, 2 * before);
        if (!in.document().charge(in, (room - before) * sizeof(std::string_view))) {
          return in.document().failed_in(name, member.size());
        }
        member.reserve(in.document().arena(), room);
      }
      for (size_t i = 0; i < count; ++i) member.add_default() = texts[i];
    }
  }
  // Reserves room: for all elements in a row if they can be counted, else by a growth factor.
  template <class T>
  static bool make_room(Cursor& in, List<T>& member) {
    constexpr size_t kMostInRow = size_t{1} << 16;
    constexpr size_t kLeast = std::is_arithmetic_v<T> ? 4 : 1;
    const size_t before = member.capacity();
    const size_t count = std::max({before + in.count_row(kMostInRow), 2 * before, kLeast});
    if (!in.document().charge(in, (count - before) * sizeof(T))) return false;
    member.reserve(in.document().arena(), count);
    return true;
  }
  template <class T>
  static void read_packed(Cursor& in, List<T>& member) {
    Runs<T> block;
    block.read(in);
    size_t count = 0;
    if (!block.count(count)) return in.fail(Code::kInvalidFile, "a packed integer is cut off or longer than ten bytes");
    if (!in.document().charge(in, count * sizeof(T))) return;
    member.reserve(in.document().arena(), member.size() + count);
    block.for_each([&](T value) { member.add(in.document().arena(), value); });
  }

  static void read(Cursor& in, std::string_view& member) { member = in.bytes(); }
  static void read(Cursor& in, int64_t& member) { member = static_cast<int64_t>(in.varint()); }
  static void read(Cursor& in, int32_t& member) { member = static_cast<int32_t>(in.varint()); }
  static void read(Cursor& in, float& member) { member = in.fixed32(); }
  template <class T>
  static void read(Cursor& in, Field<T>& member) {
    T value{};
    read(in, value);
    member = value;
  }
  template <class T>
  static void read(Cursor& in, Runs<T>& member) {
    member.read(in);
  }
  template <class T>
  static void read(Cursor& in, std::optional<T>& member) {
    if (!member) member.emplace();
    read(in, *member);
  }
  template <class T>
  static void read(Cursor& in, T*& member) {
    if (!member) {
      if (!in.document().charge(in, sizeof(T))) return;
      member = in.document().arena().make<T>();
    }
    read(in, *member);
  }
  template <class Message>
  static void read(Cursor& in, Message& member) {
    Cursor inside(in, in.bytes());
    read_message(inside, member);
  }

  Cursor& in_;
  const uint32_t number_;
  bool taken_ = false;
};

template <class Message>
void read_message(Cursor& in, Message& message) {
  if (in.too_deep()) {
    return in.fail(Code::kLimit, fmt::format("messages are nested more than {} deep", in.document().limits().depth));
  }
  // A body nested in another one has a node and its attribute in between.
  constexpr int kPerBody = 3;
  if (const auto bodies = static_cast<size_t>(in.depth() / kPerBody); bodies > 1 && !has_stack_for(bodies)) {
    return in.fail(Code::kLimit, too_deep(bodies).message());
  }
  while (in.next()) {
    FieldReader reader(in);
    Message::fields(message, reader);
    if (reader.taken()) continue;
    in.skip();
    if (!in.document().ok() || !in.document().charge(in, sizeof(std::string_view))) return;
    message.unknown.add(in.document().arena(),
                        {in.field_begin(), static_cast<size_t>(in.position() - in.field_begin())});
  }
}

}  // namespace

template <class Message>
Status merge(std::string_view bytes, Message& message, Arena& arena, Limits limits) {
  Document document(bytes, arena, limits);
  Cursor cursor(document);
  read_message(cursor, message);
  return document.ok() ? Status() : document.take_status();
}

#define TREADLE_MERGE(Message) template Status merge(std::string_view, Message&, Arena&, Limits);
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
Result<Parsed<Message>> parse(std::string_view bytes, Limits limits) {
  Parsed<Message> parsed;
  TREADLE_TRY(merge(bytes, *parsed, parsed.arena(), limits));
  return Result<Parsed<Message>>(std::move(parsed));
}

}  // namespace

Result<Parsed<ModelProto>> parse_model(std::string_view bytes, Limits limits) {
  if (bytes.empty()) return error(Code::kInvalidFile, "expected an ONNX model, found an empty file");
  return parse<ModelProto>(bytes, limits);
}

Result<Parsed<TensorProto>> parse_tensor(std::string_view bytes, Limits limits) {
  return parse<TensorProto>(bytes, limits);
}

Result<Parsed<SparseTensorProto>> parse_sparse_tensor(std::string_view bytes, Limits limits) {
  return parse<SparseTensorProto>(bytes, limits);
}

Result<Parsed<SequenceProto>> parse_sequence(std::string_view bytes, Limits limits) {
  return parse<SequenceProto>(bytes, limits);
}

Result<Parsed<OptionalProto>> parse_optional(std::string_view bytes, Limits limits) {
  return parse<OptionalProto>(bytes, limits);
}

Result<Parsed<MapProto>> parse_map(std::string_view bytes, Limits limits) {
  return parse<MapProto>(bytes, limits);
}

Result<Parsed<TypeProto>> parse_type(std::string_view bytes, Limits limits) {
  return parse<TypeProto>(bytes, limits);
}

Result<Parsed<TrainingInfoProto>> parse_training_info(std::string_view bytes, Limits limits) {
  return parse<TrainingInfoProto>(bytes, limits);
}

Result<Parsed<DeviceConfigurationProto>> parse_device_configuration(std::string_view bytes, Limits limits) {
  return parse<DeviceConfigurationProto>(bytes, limits);
}

Result<Parsed<NodeDeviceConfiguration>> parse_node_device_configuration(std::string_view bytes, Limits limits) {
  return parse<NodeDeviceConfiguration>(bytes, limits);
}

}  // namespace treadle::wire
