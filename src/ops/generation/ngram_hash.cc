// NGramHashMapping and VarlenNGramHashMapping: for every token the hashes of the n-grams that end with it, several
// heads for each n. Tokens of an n-gram that precede the sequence come from the previous call. In the second operator,
// sequences of different lengths follow each other.

#include <algorithm>
#include <array>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"

namespace treadle::generation {

namespace {

// Positions of inputs and outputs of both operators; kNone: the first operator lacks it.
struct Roles {
  static constexpr size_t kNone = SIZE_MAX;
  size_t ids = 0, multipliers = 1, vocabularies = 2;
  size_t lengths, past, offsets, end_token, segments, past_segments, captured;
};
constexpr Roles kOfBatch{.lengths = Roles::kNone,
                         .past = 3,
                         .offsets = 4,
                         .end_token = 5,
                         .segments = 6,
                         .past_segments = Roles::kNone,
                         .captured = Roles::kNone};
constexpr Roles kOfPacked{
    .lengths = 3, .past = 4, .offsets = 5, .end_token = 6, .segments = 7, .past_segments = 8, .captured = 9};

constexpr const Roles& roles_of(bool packed) {
  return packed ? kOfPacked : kOfBatch;
}

struct Sizes {
  int64_t most = 0, heads = 0, captures = 0;  // the longest n-gram, heads per length, states per sequence

  explicit Sizes(const ir::Attributes& given)
      : most(given.get_int("max_ngram_size")),
        heads(given.get_int("n_head_per_ngram")),
        captures(given.get_int("state_update_capacity")) {}
  int64_t history() const { return most - 1; }
  int64_t columns() const { return history() * heads; }
};

// ---- Inference

Status check_attributes(const InferContext& ctx, const Sizes& sizes) {
  if (sizes.most < 2 || sizes.most > 1 << 16) {
    return error(Code::kInvalidModel, "attribute max_ngram_size is {}, expected 2 to {}", sizes.most, 1 << 16);
  }
  if (sizes.heads < 1 || sizes.heads > 1 << 30) {
    return error(Code::kInvalidModel, "attribute n_head_per_ngram is {}, expected 1 or more", sizes.heads);
  }
  if (sizes.captures < 0 || sizes.captures > 8) {
    return error(Code::kInvalidModel, "attribute state_update_capacity is {}, expected 0 to 8", sizes.captures);
  }
  const int64_t pad = ctx.attributes().get_int("pad_id");
  if (ctx.element(0) == ElementType::kInt32 && (pad < INT32_MIN || pad > INT32_MAX)) {
    return error(Code::kInvalidModel, "attribute pad_id is {}, expected an int32", pad);
  }
  return {};
}

Status check_shape(const InferContext& ctx, size_t i, const Shape& expected) {
  const Shape* shape = i == Roles::kNone ? nullptr : ctx.shape(i);
  bool fits = !shape || shape->size() == expected.size();
  for (size_t k = 0; fits && shape && k < expected.size(); ++k) fits = !differ((*shape)[k], expected[k]);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", ctx.node.version->inputs[i].name,
               to_string(*shape), to_string(expected));
}

Status check_operands(const InferContext& ctx, const Roles& r, const Sizes& sizes, const Shape* ids, const Dim& batch) {
  const Shape* multipliers = ctx.shape(r.multipliers);
  if (multipliers &&
      (multipliers->size() != 1 || ((*multipliers)[0].is_known() && (*multipliers)[0].value() < sizes.most))) {
    return error(Code::kInvalidArgument, "multipliers have shape {}, expected at least {} of them",
                 to_string(*multipliers), sizes.most);
  }
  for (const size_t i : {r.vocabularies, r.offsets}) TREADLE_TRY(check_shape(ctx, i, {Dim(sizes.columns())}));
  for (const size_t i : {r.past, r.past_segments}) TREADLE_TRY(check_shape(ctx, i, {batch, Dim(sizes.history())}));
  if (ids) TREADLE_TRY(check_shape(ctx, r.segments, *ids));
  TREADLE_TRY(check_shape(ctx, r.captured, {batch}));
  if (const Dim count = length_of(ctx, r.end_token); differ(count, Dim(1))) {
    return error(Code::kInvalidArgument, "eos_token_id has {} elements, expected 1", count.value());
  }
  return {};
}

template <bool kPacked>
Status infer_hash(InferContext& ctx) {
  const Roles& r = roles_of(kPacked);
  const Sizes sizes(ctx.attributes());
  TREADLE_TRY(check_attributes(ctx, sizes));
  const Shape *ids = ctx.shape(r.ids), *ends = kPacked ? ctx.shape(r.lengths) : nullptr;
  if (ids && ids->size() != (kPacked ? 1u : 2u)) {
    return error(Code::kInvalidArgument, "input_ids have shape {}, expected {}", to_string(*ids),
                 kPacked ? "[tokens]" : "[batch,length]");
  }
  if (ends && ends->size() != 1) {
    return error(Code::kInvalidArgument, "cumulative_sequence_length has shape {}, expected one dimension",
                 to_string(*ends));
  }
  const Dim batch = kPacked ? (ends ? (*ends)[0] - Dim(1) : Dim()) : (ids ? (*ids)[0] : Dim());
  TREADLE_TRY(check_operands(ctx, r, sizes, ids, batch));
  if (kPacked && ctx.has_input(r.captured) != (sizes.captures > 0)) {
    return error(Code::kInvalidModel,
                 "capture_count is expected with attribute state_update_capacity above 0 alone, found {}",
                 sizes.captures);
  }
  const ElementType type = ctx.element(r.ids);
  if (ids) {
    Shape out = *ids;
    out.push_back(Dim(sizes.columns()));
    ctx.set_output(0, type, std::move(out));
  } else {
    ctx.set_output(0, type);
  }
  const Shape history{batch, Dim(sizes.history())};
  if (ctx.outputs.size() > 1) ctx.set_output(1, type, history);
  if (ctx.outputs.size() > 2) ctx.set_output(2, ElementType::kInt32, history);
  if (ctx.outputs.size() > 3) ctx.set_output(3, type, {batch, Dim(sizes.captures), Dim(sizes.history())});
  return {};
}

// ---- Run

struct HashState {
  Sizes sizes;
  bool packed = false, resets = false;
  int64_t pad = 0, batch = 0, length = 0, tokens = 0;
  uint32_t outputs = 0;  // operand number of the first output
  uint32_t output_count = 0;

  explicit HashState(const ir::Attributes& given) : sizes(given) {}
};

// One sequence with the tokens that precede it.
template <class T>
class Sequence {
 public:
  const T* ids = nullptr;
  const int32_t* segments = nullptr;
  int64_t length = 0;
  const T* past = nullptr;  // the last tokens before the sequence, or null
  const int32_t* past_segments = nullptr;
  int64_t history = 0;
  T missing{};
  bool resets = false;  // tokens behind `missing`, which ends a text, belong to a new text

  // The token at a position, which may be before the sequence. Positions without a token belong to the sequence's first
  // text.
  T token(int64_t at) const {
    if (at >= 0) return ids[at];
    return past && at >= -history ? past[history + at] : missing;
  }
  int32_t segment(int64_t at) const {
    if (at >= 0) return segments ? segments[at] : 0;
    if (past_segments) return past_segments[history + at];
    return segments && length > 0 ? segments[0] : 0;
  }
  // Whether a new text begins at `at`.
  bool begins(int64_t at) const {
    const bool known = at > 0 || (at == 0 && past_segments) || (at < 0 && past_segments && at > -history);
    return segments && known && segment(at) != segment(at - 1);
  }
};

template <class T>
T wrapped_product(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}

template <class T>
void hash_token(const Sequence<T>& s, const HashState& state, const T* multipliers, const T* vocabularies,
                const T* offsets, int64_t at, T* out) {
  using U = std::make_unsigned_t<T>;
  T mix = wrapped_product(s.token(at), multipliers[0]);
  bool ended = false;
  for (int64_t k = 1; k < state.sizes.most; ++k) {
    ended = ended || s.begins(at - k + 1);
    T token = ended ? s.missing : s.token(at - k);
    if (s.resets && token == s.missing) ended = true;
    mix = static_cast<T>(mix ^ wrapped_product(token, multipliers[k]));
    for (int64_t h = 0; h < state.sizes.heads; ++h, ++out) {
      const int64_t column = (k - 1) * state.sizes.heads + h;
      const T rest = static_cast<T>(mix % vocabularies[column]),
              hash = rest < 0 ? static_cast<T>(rest + vocabularies[column]) : rest;
      *out = offsets ? static_cast<T>(static_cast<U>(hash) + static_cast<U>(offsets[column])) : hash;
    }
  }
}

template <class T, bool kPacked>
class HashRun {
 public:
  HashRun(const HashState& s, void* const* slots, const uint32_t* operands)
      : s_(s), slots_(slots), operands_(operands) {}

  uint32_t run() {
    const T* vocabularies = in<T>(kRoles.vocabularies);
    for (int64_t i = 0; i < s_.sizes.columns(); ++i) {
      if (vocabularies[i] < 1)
        return refuse_element({"vocab_sizes", i}, static_cast<int64_t>(vocabularies[i]), "at least 1");
    }
    // Zeros for tokens outside of all sequences.
    const auto bytes = static_cast<size_t>(s_.tokens * s_.sizes.columns()) * sizeof(T);
    if (kPacked && !fill_in_pieces(out<T>(0), 0, bytes)) return fail(KernelError::kStopped);
    for (int64_t b = 0; b < s_.batch; ++b) {
      int64_t begin = b * s_.length, end = begin + s_.length;
      if constexpr (kPacked) {
        const auto* ends = in<int32_t>(kRoles.lengths);
        begin = ends[b], end = ends[b + 1];
        if (begin < 0 || end < begin || end > s_.tokens)
          return refuse_element({"cumulative_sequence_length", b + 1}, end, std::max<int64_t>(begin, 0), s_.tokens);
      }
      const Sequence<T> sequence = this->sequence(b, begin, end);
      if (const uint32_t failed = hash(sequence, begin)) return failed;
      keep(sequence, b);
    }
    return 0;
  }

 private:
  // Null without such an input. A node may end before its optional inputs.
  template <class V>
  const V* in(size_t i) const {
    return i < s_.outputs ? static_cast<const V*>(slots_[operands_[i]]) : nullptr;
  }
  template <class V>
  V* out(uint32_t i) const {
    return i < s_.output_count ? static_cast<V*>(slots_[operands_[s_.outputs + i]]) : nullptr;
  }

  Sequence<T> sequence(int64_t b, int64_t begin, int64_t end) const {
    Sequence<T> q;
    q.history = s_.sizes.history();
    q.ids = in<T>(kRoles.ids) + begin;
    q.length = end - begin;
    if (const auto* all = in<int32_t>(kRoles.segments)) q.segments = all + begin;
    if (const T* past = in<T>(kRoles.past)) q.past = past + b * q.history;
    if (const auto* past = in<int32_t>(kRoles.past_segments)) q.past_segments = past + b * q.history;
    const T* end_token = in<T>(kRoles.end_token);
    q.missing = end_token ? *end_token : static_cast<T>(s_.pad);
    q.resets = end_token && s_.resets;
    return q;
  }

  uint32_t hash(const Sequence<T>& q, int64_t begin) const {
    T* to = out<T>(0) + begin * s_.sizes.columns();
    const double token_ns = costs::kNgramHashNs * static_cast<double>(s_.sizes.columns() + s_.sizes.most);
    return unless_stopped(in_pieces(q.length, token_ns, [&](int64_t from, int64_t until) {
      for (int64_t t = from; t < until; ++t) {
        hash_token(q, s_, in<T>(kRoles.multipliers), in<T>(kRoles.vocabularies), in<T>(kRoles.offsets), t,
                   to + t * s_.sizes.columns());
      }
    }));
  }

  // Stores the state for the next call, and those after each of the first tokens.
  void keep(const Sequence<T>& q, int64_t b) const {
    const int64_t history = s_.sizes.history();
    if (T* to = out<T>(1)) write(q, q.length, to + b * history);
    if (auto* to = out<int32_t>(2)) {
      for (int64_t j = 0; j < history; ++j) to[b * history + j] = q.segment(q.length - history + j);
    }
    T* states = out<T>(3);
    if (!states) return;
    states += b * s_.sizes.captures * history;
    std::fill_n(states, s_.sizes.captures * history, static_cast<T>(s_.pad));
    const auto* wanted = in<int32_t>(kRoles.captured);
    const int64_t count = std::min({wanted ? int64_t{wanted[b]} : 0, q.length, s_.sizes.captures});
    for (int64_t i = 0; i < count; ++i) write(q, i + 1, states + i * history);
  }
  // Writes the last tokens before position `count`.
  void write(const Sequence<T>& q, int64_t count, T* to) const {
    for (int64_t j = 0; j < q.history; ++j) to[j] = q.token(count - q.history + j);
  }

  static constexpr const Roles& kRoles = roles_of(kPacked);
  const HashState& s_;
  void* const* slots_;
  const uint32_t* operands_;
};

template <class T, bool kPacked>
uint32_t run_hash(const void* state, void* const* slots, const uint32_t* operands) {
  return HashRun<T, kPacked>(*static_cast<const HashState*>(state), slots, operands).run();
}

template <bool kPacked>
Status prepare_hash(PrepareContext& ctx) {
  const Dims& ids = ctx.inputs[0].dims;
  auto* s = ctx.make_state<HashState>(ctx.attributes());
  s->pad = ctx.attributes().get_int("pad_id");
  s->resets = ctx.attributes().get_int("reset_on_eos") != 0;
  s->tokens = ctx.inputs[0].element_count();
  s->batch = kPacked ? ctx.inputs[kOfPacked.lengths].dims[0] - 1 : ids[0];
  s->length = kPacked ? 0 : ids[1];
  s->outputs = static_cast<uint32_t>(ctx.inputs.size());
  s->output_count = static_cast<uint32_t>(ctx.outputs.size());
  const bool wide = ctx.inputs[0].type == ElementType::kInt64;
  ctx.set_kernel(wide ? run_hash<int64_t, kPacked> : run_hash<int32_t, kPacked>, s);
  return {};
}

void add_hash_attributes(VersionBuilder& version) {
  version.required("max_ngram_size", ir::AttributeKind::kInt)
      .required("n_head_per_ngram", ir::AttributeKind::kInt)
      .required("pad_id", ir::AttributeKind::kInt)
      .attr("reset_on_eos", 0)
      .type("M", types::kIndices);
}

void add_hash_options(VersionBuilder& version) {
  version.in("past_ids", "M", Arity::kOptional)
      .in("head_offsets", "M", Arity::kOptional)
      .in("eos_token_id", "M", Arity::kOptional)
      .in("segment_ids", "tensor(int32)", Arity::kOptional);
}

Status entries_of_batch(AxisContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    const bool of_entries = i == kOfBatch.ids || i == kOfBatch.past || i == kOfBatch.segments;
    if (c.present(i) && c.in(i) != (of_entries ? 0 : kNoAxis)) return looks_along("not all of its inputs run along it");
  }
  return c.give_all(0);
}

}  // namespace

}  // namespace treadle::generation

TREADLE_OP(NGramHashMapping, "com.microsoft") {
  op.since(1)
      .in("input_ids", "M")
      .in("multipliers", "M")
      .in("vocab_sizes", "M")
      .with(generation::add_hash_options)
      .out("hash_ids", "M")
      .out("present_ids", "M", Arity::kOptional)
      .with(generation::add_hash_attributes);
  op.infer(generation::infer_hash<false>)
      .prepare(generation::prepare_hash<false>)
      .can_fail()
      .axes(generation::entries_of_batch);
}

TREADLE_OP(VarlenNGramHashMapping, "com.microsoft") {
  op.since(1)
      .in("input_ids", "M")
      .in("multipliers", "M")
      .in("vocab_sizes", "M")
      .in("cumulative_sequence_length", "S")
      .with(generation::add_hash_options)
      .in("past_segment_ids", "S", Arity::kOptional)
      .in("capture_count", "S", Arity::kOptional)
      .out("hash_ids", "M")
      .out("present_ids", "M", Arity::kOptional)
      .out("present_segment_ids", "S", Arity::kOptional)
      .out("state_update", "M", Arity::kOptional)
      .with(generation::add_hash_attributes)
      .attr("state_update_capacity", 0)
      .type("S", types::kInt32s);
  op.infer(generation::infer_hash<true>)
      .prepare(generation::prepare_hash<true>)
      .can_fail()
      .no_axes("its sequences lie behind each other");
}
