#include "fuzz/support/model_mutator.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "fuzz/support/node_maker.h"
#include "ir/text.h"
#include "op/registry.h"
#include "wire/clone.h"
#include "wire/parse.h"
#include "wire/serialize.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace treadle::fuzz {

namespace {

using wire::AttributeProto, wire::Field, wire::FunctionProto, wire::GraphProto, wire::ModelProto, wire::NodeProto,
    wire::Runs, wire::TensorProto, wire::TypeProto;

// Of all changes that are offered one, each as likely as its weight.
class Choice {
 public:
  explicit Choice(Random& random) : random_(random) {}
  template <class Fn>
  void offer(size_t weight, Fn&& change) {
    total_ += weight;
    if (random_.below(total_) < weight) chosen_ = std::forward<Fn>(change);
  }
  void make() {
    if (chosen_) chosen_();
  }

 private:
  Random& random_;
  size_t total_ = 0;
  std::function<void()> chosen_;
};

// All messages of a model by their type, as donors.
class Pool {
 public:
  explicit Pool(const ModelProto& model) { add(model); }
  template <class Message>
  const Message* pick(Random& random) const {
    const auto found = messages_.find(&kId<Message>);
    return found == messages_.end() ? nullptr : static_cast<const Message*>(random.pick(found->second));
  }
  const std::vector<std::string_view>& texts() const { return texts_; }

  template <class T>
  void operator()(uint32_t, std::string_view, const T& member) {
    add(member);
  }

 private:
  template <class>
  static constexpr char kId = 0;

  template <class T>
  void add(const T& value) {
    if constexpr (std::is_same_v<T, std::string_view>) {
      if (!value.empty()) texts_.push_back(value);
    } else if constexpr (wire::HasFields<T>) {
      messages_[&kId<T>].push_back(&value);
      T::fields(value, *this);
    }
  }
  template <class T>
  void add(const std::optional<T>& value) {
    if (value) add(*value);
  }
  template <class T>
  void add(T* const& value) {
    if (value) add(*value);
  }
  template <class T>
  void add(const wire::List<T>& values) {
    for (const T& value : values) add(value);
  }

  std::unordered_map<const void*, std::vector<const void*>> messages_;
  std::vector<std::string_view> texts_;
};

// Offers what could be done at every place of a model. A visitor of fields.
class Offers {
 public:
  Offers(Choice& choice, const Pool& pool, const ModelProto& model, Random& random, Storage& storage)
      : choice_(choice), pool_(pool), random_(random), storage_(storage), maker_(random, storage, model) {}

  template <class T>
  void operator()(uint32_t number, std::string_view, T& member) {
    field_ = number;
    visit(member);
  }

  template <class Message>
    requires wire::HasFields<Message>
  void visit(Message& message) {
    offer_whole(message);
    Message::fields(message, *this);
  }
  void visit(GraphProto& graph) {
    const size_t outer = scope_.values.size();
    for (const auto& input : graph.inputs) see(input);
    for (const TensorProto& tensor : graph.initializers) see(tensor.name, tensor.data_type);
    offer_nodes(graph.nodes);
    offer_initializer(graph);
    offer_output(graph);
    scope_.graphs.push_back(&graph);
    GraphProto::fields(graph, *this);
    scope_.values.resize(outer);
  }
  void visit(FunctionProto& function) {
    const std::vector<Scope::Visible> outer = std::move(scope_.values);
    scope_.values.clear();
    for (const std::string_view input : function.inputs) see(input);
    offer_nodes(function.nodes);
    FunctionProto::fields(function, *this);
    scope_.values = outer;
  }

 private:
  void visit(std::string_view& text) {
    choice_.offer(2, [this, &text] { text = other_text(text); });
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  void visit(T& number) {
    choice_.offer(1, [this, &number] { number = other_number(number); });
  }
  template <class T>
  void visit(Field<T>& number) {
    choice_.offer(1, [this, &number] { number = other_number(number.get()); });
  }
  template <class T>
  void visit(std::optional<T>& member) {
    if (member) {
      choice_.offer(1, [&member] { member.reset(); });
      visit(*member);
    } else {
      choice_.offer(1, [this, &member] { member = fresh<T>(); });
    }
  }
  template <class T>
  void visit(T*& member) {
    if (member) {
      choice_.offer(1, [&member] { member = nullptr; });
      visit(*member);
    } else {
      choice_.offer(1, [this, &member] { member = storage_.arena().make<T>(fresh<T>()); });
    }
  }
  template <class T>
  void visit(wire::List<T>& list) {
    choice_.offer(1, [this, &list] {
      const size_t at = random_.below(list.size() + 1);
      list.add(storage_.arena(), fresh<T>());
      std::rotate(list.begin() + at, list.end() - 1, list.end());
    });
    if (list.empty()) return;
    choice_.offer(2, [this, &list] {
      const size_t at = random_.below(list.size());
      std::rotate(list.begin() + at, list.begin() + at + 1, list.end());
      list.truncate(random_.one_in(6) ? at : list.size() - 1);
    });
    if (list.size() > 1) {
      choice_.offer(1,
                    [this, &list] { std::swap(list[random_.below(list.size())], list[random_.below(list.size())]); });
    }
    for (T& element : list) visit(element);
  }
  template <class T>
  void visit(Runs<T>& values) {
    const uint32_t number = field_;
    choice_.offer(1, [this, &values, number] { values = random_values<T>(number); });
  }

  // Another message of the same type takes its place.
  template <class Message>
  void offer_whole(Message& message) {
    if constexpr (std::is_same_v<Message, ModelProto>) return;
    choice_.offer(1, [this, &message] { message = fresh<Message>(); });
    if constexpr (std::is_same_v<Message, NodeProto>) offer_operator(message);
  }
  void offer_operator(NodeProto& node) {
    for (const std::string_view input : node.outputs) see(input);
    const Scope scope = scope_;
    choice_.offer(2, [this, &node, scope] {
      const OpDef* op = find_op(node.domain, node.op_type);
      if (!op || random_.one_in(3)) op = random_.pick(all_ops());
      node.op_type = op->name;
      node.domain = op->domain;
      if (const OpVersion* version = maker_.version_of(*op)) maker_.set_attributes(node, *version, scope);
    });
    if (node.inputs.empty() || scope_.values.empty()) return;
    choice_.offer(
        3, [this, &node, scope] { node.inputs[random_.below(node.inputs.size())] = random_.pick(scope.values).name; });
  }
  void offer_nodes(wire::List<NodeProto>& nodes) {
    const Scope scope = scope_;
    choice_.offer(12, [this, &nodes, scope] {
      Scope inner = scope;
      const size_t at = random_.one_in(3) ? random_.below(nodes.size() + 1) : nodes.size();
      for (size_t i = 0; i < at; ++i) {
        for (const std::string_view output : nodes[i].outputs) inner.values.push_back({output, {}});
      }
      const std::vector<NodeProto> made = maker_.make(inner);
      const size_t before = nodes.size();
      nodes.append(storage_.arena(), made.begin(), made.end());
      std::rotate(nodes.begin() + at, nodes.begin() + before, nodes.end());
    });
  }
  void offer_initializer(GraphProto& graph) {
    choice_.offer(2, [this, &graph] {
      TensorProto tensor = maker_.tensor(random_.one_in(3) ? ElementType::kFloat : ElementType::kInt64);
      tensor.name = graph.inputs.empty() || random_.one_in(3) ? maker_.new_name() : random_.pick(graph.inputs).name;
      graph.initializers.add(storage_.arena(), tensor);
    });
  }
  void offer_output(GraphProto& graph) {
    if (graph.nodes.empty()) return;
    choice_.offer(3, [this, &graph] {
      const NodeProto& node = random_.one_in(2) ? graph.nodes.back() : random_.pick(graph.nodes);
      if (!node.outputs.empty()) graph.outputs.add(storage_.arena()).name = random_.pick(node.outputs);
    });
  }

  void see(std::string_view name, int64_t element = 0) {
    scope_.values.push_back({name, element_type_from_number(element)});
  }
  void see(const wire::ValueInfoProto& value) {
    see(value.name, value.type && value.type->tensor ? value.type->tensor->elem_type.get() : 0);
  }

  template <class T>
  T fresh() {
    if constexpr (std::is_same_v<T, std::string_view>) {
      return other_text({});
    } else if constexpr (std::is_arithmetic_v<T>) {
      return other_number(T{});
    } else if constexpr (std::is_same_v<T, TypeProto>) {
      if (random_.one_in(2)) return maker_.type();
    } else if constexpr (std::is_same_v<T, TensorProto>) {
      if (random_.one_in(2)) return maker_.tensor(static_cast<ElementType>(1 + random_.below(28)));
    }
    if constexpr (wire::HasFields<T>) {
      const T* other = pool_.pick<T>(random_);
      return other && !random_.one_in(10) ? wire::clone(*other, storage_.arena()) : T();
    }
  }
  template <class T>
  T other_number(T old) {
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(random_.real());
    } else {
      if (random_.one_in(3)) return static_cast<T>(static_cast<uint64_t>(old) + 2 * random_.below(2) - 1);
      if (random_.one_in(4)) return static_cast<T>(random_.below(32));
      return static_cast<T>(random_.number());
    }
  }
  std::string_view other_text(std::string_view old) {
    const Vocabulary& words = vocabulary();
    switch (random_.below(10)) {
      case 0:
        return random_.pick(words.operators);
      case 1:
        return random_.pick(words.attributes);
      case 2:
        return random_.pick(words.settings);
      case 3:
        return symbol(random_);
      case 4:
        return maker_.new_name();
      case 5:
        return maker_.random_bytes(random_.below(2 * old.size() + 9));
      case 6:
        return random_.one_in(2) ? std::string_view("") : random_.pick(words.domains);
      default:
        return pool_.texts().empty() ? std::string_view("x") : random_.pick(pool_.texts());
    }
  }
  template <class T>
  Runs<T> random_values(uint32_t number) {
    std::string bytes;
    const auto varint = [&](uint64_t value) {
      for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
      bytes += static_cast<char>(value);
    };
    for (size_t i = random_.below(8); i > 0; --i) {
      if constexpr (Runs<T>::kIsBytes) {
        const std::string_view text = other_text({});
        varint(uint64_t{number} << 3 | 2);
        varint(text.size());
        bytes += text;
      } else if constexpr (Runs<T>::kIsFixed) {
        const T value = static_cast<T>(random_.real());
        bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
      } else {
        varint(static_cast<uint64_t>(random_.number()));
      }
    }
    Runs<T> values;
    if (!bytes.empty()) values.add(storage_.arena(), {storage_.keep(bytes), !Runs<T>::kIsBytes});
    return values;
  }

  Choice& choice_;
  const Pool& pool_;
  Random& random_;
  Storage& storage_;
  NodeMaker maker_;
  Scope scope_;
  uint32_t field_ = 0;
};

struct Read {
  ir::TextStorage text_storage;
  ModelProto model;
  Status status;

  explicit Read(std::string_view bytes) {
    if (ir::looks_like_text(bytes)) {
      auto parsed = ir::parse_text<ModelProto>(bytes, text_storage);
      if (parsed.ok()) model = *parsed;
      status = std::move(parsed).status();
    } else {
      status = wire::merge(bytes, model, text_storage.arena());
    }
  }
};

size_t write(const ModelProto& model, uint8_t* out, size_t max_size, bool as_text) {
  std::string bytes;
  if (as_text) {
    bytes = ir::print_text(model);
  } else if (auto serialized = wire::serialize(model); serialized.ok()) {
    bytes = std::move(*serialized);
  }
  if (bytes.empty() || bytes.size() > max_size) return 0;
  std::memcpy(out, bytes.data(), bytes.size());
  return bytes.size();
}

}  // namespace

void change(ModelProto& model, const ModelProto& donor, Random& random, Storage& storage) {
  Choice choice(random);
  const Pool pool(donor);
  Offers offers(choice, pool, model, random, storage);
  offers.visit(model);
  choice.make();
}

size_t mutate_model(uint8_t* data, size_t size, size_t max_size, unsigned seed, bool as_text) {
  Random random(seed);
  if (random.one_in(12)) return LLVMFuzzerMutate(data, size, max_size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);  // `data` is written while the model looks at it
  Read read(bytes);
  if (!read.status.ok()) return LLVMFuzzerMutate(data, size, max_size);
  Storage storage;
  do {
    change(read.model, read.model, random, storage);
  } while (!random.one_in(3));
  const size_t written = write(read.model, data, max_size, as_text);
  return written ? written : LLVMFuzzerMutate(data, size, max_size);
}

size_t cross_models(const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2, uint8_t* out,
                    size_t max_size, unsigned seed, bool as_text) {
  const std::string_view bytes1(reinterpret_cast<const char*>(data1), size1);
  const std::string_view bytes2(reinterpret_cast<const char*>(data2), size2);
  Read read1(bytes1), read2(bytes2);
  if (!read1.status.ok() || !read2.status.ok()) return 0;
  Random random(seed);
  Storage storage;
  do {
    change(read1.model, read2.model, random, storage);
  } while (!random.one_in(3));
  return write(read1.model, out, max_size, as_text);
}

}  // namespace treadle::fuzz
