#include "allocation/models.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace treadle::faults {

void require_ok(treadle_status* status) {
  if (!status) return;
  std::fprintf(stderr, "%s\n", treadle_status_text(status));
  std::abort();
}

namespace {

enum Element { kFloat = 1, kUint8 = 2, kInt64 = 7, kString = 8, kBool = 9 };

template <class T>
std::function<Value()> tensor(Element element, std::vector<int64_t> dims, std::function<T(int64_t)> at) {
  return [=] {
    treadle_value* value = nullptr;
    require_ok(treadle_tensor_create(element, dims.data(), dims.size(), &value));
    auto* data = static_cast<T*>(treadle_tensor_mutable_data(value));
    for (int64_t i = 0; i < treadle_tensor_count(value); ++i) data[i] = at(i);
    return Value(value);
  };
}

std::function<Value()> floats(std::vector<int64_t> dims) {
  return tensor<float>(kFloat, std::move(dims),
                       [](int64_t i) { return 0.25F * static_cast<float>((i * 7 + 3) % 11) - 1.0F; });
}

std::function<Value()> ints(std::vector<int64_t> dims, std::vector<int64_t> values) {
  return tensor<int64_t>(kInt64, std::move(dims), [=](int64_t i) { return values[static_cast<size_t>(i)]; });
}

std::function<Value()> flag(bool on) {
  return tensor<bool>(kBool, {}, [=](int64_t) { return on; });
}

std::function<Value()> texts(std::vector<std::string> all) {
  return [=] {
    std::vector<treadle_text> parts;
    for (const std::string& text : all) parts.push_back({text.data(), text.size()});
    const auto count = static_cast<int64_t>(parts.size());
    treadle_value* value = nullptr;
    require_ok(treadle_tensor_from_texts(&count, 1, parts.data(), parts.size(), &value));
    return Value(value);
  };
}

std::function<Value()> list(std::vector<std::function<Value()>> elements) {
  return [=] {
    std::vector<Value> made;
    std::vector<const treadle_value*> values;
    for (const auto& make : elements) values.push_back(made.emplace_back(make()).get());
    treadle_value* value = nullptr;
    require_ok(treadle_sequence_create(nullptr, values.data(), values.size(), &value));
    return Value(value);
  };
}

std::function<Value()> optional(std::function<Value()> make) {
  return [=] {
    treadle_value* value = nullptr;
    require_ok(treadle_optional_create(nullptr, make().get(), &value));
    return Value(value);
  };
}

std::function<Value()> map(std::function<Value()> keys, std::function<Value()> values) {
  return [=] {
    treadle_value* value = nullptr;
    require_ok(treadle_map_create(keys().get(), values().get(), &value));
    return Value(value);
  };
}

constexpr const char* kHeader = "<ir_version: 10, opset_import: [\"\" : 20, \"ai.onnx.ml\" : 3]>\n";

constexpr const char* kElementwise = R"(
main (float[N, 16] x, float[16] b) => (float[N, 16] y, float[M, K] z, float[N] s) {
  a = Mul (x, x)
  c = Add (a, b)
  d = Tanh (c)
  y = Sub (d, x)
  t = Transpose <perm = [1, 0]> (y)
  z = Concat <axis = 0> (t, t)
  one = Constant <value = int64[1] {1}> ()
  s = ReduceSum <keepdims = 0> (y, one)
}
)";

constexpr const char* kControl = R"(
main (bool c, int64 m, float[N, 4] x) => (float[R, C] y, float[S, T] scans, float[N, 4] last) {
  go = Constant <value = bool {1}> ()
  last, scans = Loop (m, go, x) <
    body = step (int64 iteration, bool go_in, float[N, 4] s) => (bool go_out, float[N, 4] t, float[4] row) {
      limit = Constant <value = int64 {6}> ()
      go_out = Less (iteration, limit)
      f = Cast <to = 1> (iteration)
      zero = Constant <value = float {0}> ()
      odd = Greater (f, zero)
      t = If (odd) <
        then_branch = a () => (float[N, 4] u) { w = Mul (s, f)
                                                u = Add (w, x) },
        else_branch = b () => (float[N, 4] v) { v = Sub (s, x) }>
      axis = Constant <value = int64[1] {0}> ()
      row = ReduceMax <keepdims = 0> (t, axis)
    }>
  y = If (c) <
    then_branch = p () => (float[R, C] q) { q = Concat <axis = 0> (last, x) },
    else_branch = r () => (float[R, C] o) { o = Transpose (last) }>
}
)";

constexpr const char* kFunction = R"(
main (int64 m, float x) => (float y, float z) {
  y = local.repeat <by = 2.0> (m, x)
  z = local.repeat <by = -1.0> (m, x)
}
<domain: "local", opset_import: ["" : 20]>
repeat <by> (m, x) => (y) {
  go = Constant <value = bool {1}> ()
  y = Loop (m, go, x) <
    body = step (int64 iteration, bool go_in, float s) => (bool go_in, float t) {
      factor = Constant <value_float: float = @by> ()
      t = Mul (s, factor)
    }>
}
)";

constexpr const char* kSequences = R"(
main (int64 m, float[N] x, seq(float[K]) given) => (float[J] joined, seq(float[P]) parts, seq(float[Q]) squares, int64 n) {
  go = Constant <value = bool {1}> ()
  none = SequenceEmpty <dtype = 1> ()
  all = Loop (m, go, none) <
    body = step (int64 iteration, bool go_in, seq(float[L]) s) => (bool go_in, seq(float[L]) t) {
      f = Cast <to = 1> (iteration)
      y = Mul (x, f)
      start = Constant <value = int64[1] {0}> ()
      one = Constant <value = int64[1] {1}> ()
      shape = Constant <value = int64[1] {-1}> ()
      end = Reshape (iteration, shape)
      more = Add (end, one)
      part = Slice (y, start, more)
      t = SequenceInsert (s, part)
    }>
  joined = ConcatFromSequence <axis = 0> (all)
  size = Constant <value = int64 {2}> ()
  parts = SplitToSequence <axis = 0> (x, size)
  squares = SequenceMap (given) <body = square (float[K] e) => (float[Q] o) { o = Mul (e, e) }>
  n = SequenceLength (all)
}
)";

constexpr const char* kOptionals = R"(
main (bool c, optional(float[N]) o, float[N] x) => (float[N] y, optional(float[N]) z) {
  has = OptionalHasElement (o)
  y = If (has) <
    then_branch = a () => (float[N] u) { u = OptionalGetElement (o) },
    else_branch = b () => (float[N] v) { v = Neg (x) }>
  z = If (c) <
    then_branch = d () => (optional(float[N]) p) { p = Optional (x) },
    else_branch = e () => (optional(float[N]) q) { q = Optional <type = float[N]> () }>
}
)";

constexpr const char* kMaps = R"(
main (map(string, float) m, float[N, 3] x) => (float[1, 3] v, seq(map(string, float)) z, int64[N] label) {
  v = ai.onnx.ml.DictVectorizer <string_vocabulary = ["a", "bb", "a key that is longer than others"]> (m)
  label, scores = ai.onnx.ml.LinearClassifier <classlabels_ints = [0, 1, 2], coefficients = [1., 2., 3., 0.5, 0.25, 1., -1., 0., 2.],
    intercepts = [0.1, 0.2, 0.3], post_transform = "SOFTMAX"> (x)
  z = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "bb", "a key that is longer than others"]> (scores)
}
)";

constexpr const char* kStrings = R"(
main (string[N] s, string[N] t) => (string[A, B] parts, int64[N] counts, string[C] plain, string[N] both,
                                    string[U] some, string[V] again) {
  both = StringConcat (s, t)
  parts, counts = StringSplit <delimiter = " "> (both)
  plain = StringNormalizer <case_change_action = "UPPER", stopwords = ["the"]> (s)
  zero = Constant <value = int64[2] {1, 0}> ()
  some = Gather (both, zero)
  go = Constant <value = bool {1}> ()
  two = Constant <value = int64 {2}> ()
  again = Loop (two, go, s) <
    body = step (int64 iteration, bool go_in, string[W] a) => (bool go_in, string[W] b) { b = Concat <axis = 0> (a, t) }>
}
)";

constexpr const char* kPatterns = R"(
main (string[N] s) => (bool[N] fits) {
  fits = RegexFullMatch <pattern = ".*(fox|dog).*"> (s)
}
)";

constexpr const char* kWords = R"(
main (string[N] s) => (float[F] counts, int64[N] labels, string[N] back) {
  counts = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 1, ngram_counts = [0, 3],
    ngram_indexes = [0, 1, 2, 3], pool_strings = ["a quick", "fox", "over", "fox", "over"]> (s)
  labels = ai.onnx.ml.LabelEncoder <keys_strings = ["a quick", "fox", "over"], values_int64s = [4, 5, 6], default_int64 = -1> (s)
  back = ai.onnx.ml.LabelEncoder <keys_int64s = [4, 5, 6], values_strings = ["four", "five, which is longer", "six"],
    default_string = "none of these"> (labels)
}
)";

// Attention over a cache that grows, as in a decoder.
constexpr const char* kGrowing = R"(
main (int64 m, float[1, 8] x) => (float[1, 8] y, float[A, 8] keys) <float[0, 8] empty = {}, float[8, 8] w = {
  0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.1,
  0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.1, 0.2, 0.3,
  0.5, 0.6, 0.7, 0.8, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.1, 0.2, 0.3, 0.4, 0.5,
  0.7, 0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7}> {
  go = Constant <value = bool {1}> ()
  y, keys = Loop (m, go, x, empty) <
    body = step (int64 iteration, bool go_in, float[1, 8] s, float[P, 8] k) => (bool go_in, float[1, 8] t, float[Q, 8] kN) {
      q = MatMul (s, w)
      kN = Concat <axis = 0> (k, q)
      kT = Transpose <perm = [1, 0]> (kN)
      scores = MatMul (q, kT)
      weights = Softmax <axis = 1> (scores)
      t = MatMul (weights, kN)
    }>
}
)";

// Two layers over time, and both directions of one; weights that are computed when the model is loaded.
constexpr const char* kRecurrent = R"(
main (float[T, 2, 12] x) => (float[T, 1, 2, 16] y, float[2, 2, 16] h, float[T, 1, 2, 16] g) <
    int64[3] w_sizes = {1, 64, 12}, int64[3] r_sizes = {1, 64, 16}, int64[3] v_sizes = {1, 64, 16},
    int64[3] both_w = {2, 48, 16}, int64[3] both_r = {2, 48, 16}> {
  w = ConstantOfShape <value: tensor = float {0.03}> (w_sizes)
  r = ConstantOfShape <value: tensor = float {-0.02}> (r_sizes)
  v = ConstantOfShape <value: tensor = float {0.05}> (v_sizes)
  y, hy, cy = LSTM <hidden_size = 16> (x, w, r)
  one = Constant <value = int64[1] {1}> ()
  flat = Squeeze (y, one)
  g, hg, cg = LSTM <hidden_size = 16> (flat, v, r)
  flatter = Squeeze (g, one)
  bw = ConstantOfShape <value: tensor = float {0.04}> (both_w)
  br = ConstantOfShape <value: tensor = float {0.01}> (both_r)
  z, h = GRU <hidden_size = 16, direction = "bidirectional", linear_before_reset = 1> (flatter, bw, br)
}
)";

constexpr const char* kImages = R"(
main (float[1, 4, H, W] x) => (float[A, B, C, D] y, float[E, F, G, I] z) <int64[4] k_sizes = {8, 4, 3, 3}, int64[4] d_sizes = {8, 1, 5, 5}> {
  k = ConstantOfShape <value: tensor = float {0.05}> (k_sizes)
  d = ConstantOfShape <value: tensor = float {0.1}> (d_sizes)
  c = Conv <pads = [1, 1, 1, 1]> (x, k)
  r = Relu (c)
  e = Conv <group = 8, pads = [2, 2, 2, 2], strides = [2, 2]> (r, d)
  y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (e)
  scales = Constant <value = float[4] {1, 1, 1.5, 1.5}> ()
  z = Resize <mode = "linear"> (y, , scales)
}
)";

constexpr const char* kProducts = R"(
main (float[N, 96] x, float[96, 80] w) => (float[N, 80] y, float[J, K] e, float[S, T] n) {
  p = MatMul (x, w)
  y = Softmax <axis = 1> (p)
  e = Einsum <equation = "ij,kj->ik"> (x, x)
  size = Constant <value = int64[1] {96}> ()
  scale = ConstantOfShape <value: tensor = float {1.5}> (size)
  n = LayerNormalization (x, scale)
}
)";

constexpr const char* kQuantized = R"(
main (float[N, 32] x, uint8[32, 16] w) => (int32[N, 16] p, uint8[N, 16] q, float[N, 32] back) {
  u, scale, zero = DynamicQuantizeLinear (x)
  p = MatMulInteger (u, w, zero)
  other = Constant <value = float {0.1}> ()
  none = Constant <value = uint8 {3}> ()
  q = QLinearMatMul (u, scale, zero, w, other, none, other, none)
  back = DequantizeLinear (u, scale, zero)
}
)";

constexpr const char* kDecidedByData = R"(
main (float[N] x, int64[K] at) => (int64[A, B] where, float[U] values, int64[V] first, float[P] top, int64[Q] which,
                                   float[R] chosen, float[N] put, float[S] sums) {
  zero = Constant <value = float {0}> ()
  positive = Greater (x, zero)
  where = NonZero (x)
  values, first, inverse, counts = Unique (x)
  two = Constant <value = int64[1] {2}> ()
  top, which = TopK (x, two)
  chosen = Compress <axis = 0> (x, positive)
  updates = Gather (x, at)
  put = ScatterElements (x, at, updates)
  axis = Constant <value = int64 {0}> ()
  sums = CumSum (chosen, axis)
}
)";

constexpr const char* kScan = R"(
main (float[T, 3] x, float[3] s0) => (float[3] s, float[T, 3] y, float[T, 3] back) {
  s, y, back = Scan <num_scan_inputs = 1, scan_output_directions = [0, 1],
    body = step (float[3] s_in, float[3] xi) => (float[3] s_out, float[3] yi, float[3] zi) {
      a = Add (s_in, xi)
      s_out = Tanh (a)
      yi = Mul (s_out, s_out)
      zi = Sub (a, xi)
    }> (s0, x)
}
)";

constexpr const char* kTrees = R"(
main (float[N, 2] x) => (string[N] label, seq(map(string, float)) table) {
  label, scores = ai.onnx.ml.TreeEnsembleClassifier <nodes_treeids = [0, 0, 0, 1, 1, 1], nodes_nodeids = [0, 1, 2, 0, 1, 2],
    nodes_featureids = [0, 0, 0, 1, 0, 0], nodes_values = [0.5, 0., 0., -0.25, 0., 0.],
    nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    nodes_truenodeids = [1, 0, 0, 1, 0, 0], nodes_falsenodeids = [2, 0, 0, 2, 0, 0],
    class_treeids = [0, 0, 1, 1], class_nodeids = [1, 2, 1, 2], class_ids = [0, 1, 2, 0], class_weights = [1., 0.5, 0.25, 2.],
    classlabels_strings = ["one label", "another label, a longer one", "c"]> (x)
  table = ai.onnx.ml.ZipMap <classlabels_strings = ["one label", "another label, a longer one", "c"]> (scores)
}
)";

constexpr const char* kSignals = R"(
main (float[1, 64, 1] x, float[1, 64, 1] wave) => (float[A, B, C] spectrum, float[D, E, F, G] frames, float[H, I] window) {
  axis = Constant <value = int64 {1}> ()
  spectrum = DFT (x, , axis)
  step = Constant <value = int64 {16}> ()
  size = Constant <value = int64 {32}> ()
  shape = HannWindow (size)
  frames = STFT (wave, step, shape, size)
  two = Constant <value = int64[2] {4, 16}> ()
  window = Reshape (wave, two)
}
)";

// Sizes that depend on data, in a loop that becomes native code.
constexpr const char* kNative = R"(
main (int64 m, float[8] x, float[4, 8] table) => (float[8] y, float[S, 8] rows, float[G] grown) <float[0] empty = {}> {
  go = Constant <value = bool {1}> ()
  y, grown, rows = Loop (m, go, x, empty) <
    body = step (int64 iteration, bool go_in, float[8] s, float[P] e) => (bool go_in, float[8] t, float[Q] f, float[8] row) {
      four = Constant <value = int64 {4}> ()
      at = Mod (iteration, four)
      row = Gather <axis = 0> (table, at)
      a = Mul (s, row)
      b = Add (a, x)
      t = Tanh (b)
      one = Constant <value = int64[1] {1}> ()
      zero = Constant <value = int64[1] {0}> ()
      first = Slice (t, zero, one)
      f = Concat <axis = 0> (e, first)
    }>
}
)";

// Enough iterations for native code to be compiled in the background.
constexpr const char* kManyIterations = R"(
main (int64 m, float[8] x) => (float[8] y) {
  go = Constant <value = bool {1}> ()
  y = Loop (m, go, x) <
    body = step (int64 iteration, bool go_in, float[8] s) => (bool go_in, float[8] t) {
      a = Mul (s, x)
      b = Add (a, x)
      t = Tanh (b)
    }>
}
)";

}  // namespace

std::vector<Model> models() {
  const auto m = [](int64_t count) { return Input{"m", ints({}, {count})}; };
  std::vector<Model> all = {
      {"elementwise", kElementwise, {{"x", floats({5, 16})}, {"b", floats({16})}}, {}},
      {"control", kControl, {{"c", flag(true)}, m(5), {"x", floats({3, 4})}}, {}},
      {"function", kFunction, {m(3), {"x", floats({})}}, {}},
      {"sequences", kSequences, {m(4), {"x", floats({6})}, {"given", list({floats({2}), floats({3})})}}, {}},
      {"optionals", kOptionals, {{"c", flag(false)}, {"o", optional(floats({3}))}, {"x", floats({3})}}, {}},
      {"maps", kMaps, {{"m", map(texts({"bb", "a"}), floats({2}))}, {"x", floats({2, 3})}}, {}},
      {"strings",
       kStrings,
       {{"s", texts({"a quick brown", "fox that jumps over", "the"})}, {"t", texts({" lazy dog", "", " x y z"})}},
       {}},
      {"patterns", kPatterns, {{"s", texts({"a quick brown fox", "dogs"})}}, {}},
      {"words", kWords, {{"s", texts({"a quick", "fox", "over", "something else that is long"})}}, {}},
      {"growing", kGrowing, {m(9), {"x", floats({1, 8})}}, {}},
      {"recurrent", kRecurrent, {{"x", floats({24, 2, 12})}}, {}},
      {"images", kImages, {{"x", floats({1, 4, 20, 22})}}, {}},
      {"products", kProducts, {{"x", floats({7, 96})}, {"w", floats({96, 80})}}, {}},
      {"quantized",
       kQuantized,
       {{"x", floats({3, 32})}, {"w", tensor<uint8_t>(kUint8, {32, 16}, [](int64_t i) { return uint8_t(i % 9); })}},
       {}},
      {"decided by data", kDecidedByData, {{"x", floats({9})}, {"at", ints({2}, {1, 4})}}, {}},
      {"scan", kScan, {{"x", floats({7, 3})}, {"s0", floats({3})}}, {}},
      {"trees", kTrees, {{"x", floats({4, 2})}}, {}},
      {"signals", kSignals, {{"x", floats({1, 64, 1})}, {"wave", floats({1, 64, 1})}}, {}},
      {"many iterations", kManyIterations, {m(20'000), {"x", floats({8})}}, {}},
      {"native", kNative, {m(20), {"x", floats({8})}, {"table", floats({4, 8})}}, {}},
  };
  for (Model& model : all) {
    model.text = kHeader + model.text;
    model.settings = {{"threads", "1"}, {"jit", "off"}};
    model.may_lose = model.name == "patterns";  // RE2 leaks when its memory runs out
  }
  return all;
}

std::vector<Model> threaded_models() {
  std::vector<Model> all = {
      {"recurrent", kRecurrent, {{"x", floats({1000, 2, 12})}}, {}},
      {"images", kImages, {{"x", floats({1, 4, 160, 150})}}, {}},
      {"products", kProducts, {{"x", floats({1000, 96})}, {"w", floats({96, 80})}}, {}},
  };
  for (Model& model : all) {
    model.text = kHeader + model.text;
    model.settings = {{"threads", "2"}, {"jit", "off"}};
  }
  return all;
}

Model external_model(const std::string& folder) {
  Model model{"external data", kHeader, {{"x", floats({2, 16})}}, {{"threads", "1"}, {"jit", "off"}}};
  model.text += R"(
main (float[N, 16] x) => (float[N, 16] y, float[16, 16] other)
<float[16, 16] w = ["location": "weights.bin", "offset": "0", "length": "1024"],
 float[16, 16] v = ["location": "weights.bin", "offset": "1028", "length": "1024"]> {
  y = MatMul (x, w)
  other = Add (v, w)
}
)";
  std::ofstream file(folder + "/weights.bin", std::ios::binary);
  for (int i = 0; i < 40'000; ++i) {  // large enough for the file to be mapped
    const float value = 0.01F * static_cast<float>(i % 50);
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return model;
}

std::vector<StreamModel> stream_models() {
  constexpr const char* kWindows = R"(
windows (float[B, N] x, float[B, 6] s) => (float[B, 1] level, float[B, 6] sN) <int64[1] one = {1}> {
  sN = Add (s, x)
  level = ReduceSum (sN, one)
})";
  constexpr const char* kOverTime = R"(
signal (float[B, 4, T] x) => (float[T, D, B, 8] y, float[D, B, 8] last)
<int64[3] kernel = {4, 4, 3}, int64[3] ws = {1, 24, 4}, int64[3] rs = {1, 24, 8}> {
  k = ConstantOfShape <value: tensor = float {0.1}> (kernel)
  w = ConstantOfShape <value: tensor = float {0.2}> (ws)
  r = ConstantOfShape <value: tensor = float {0.05}> (rs)
  c = Conv <pads = [1, 1]> (x, k)
  t = Transpose <perm = [2, 0, 1]> (c)
  y, last = GRU <hidden_size = 8> (t, w, r)
})";
  constexpr const char* kSteps = R"(
signal (float[T, 3] x, float[3] s0) => (float[3] s, float[T, 3] y) {
  s, y = Scan <num_scan_inputs = 1, body = step (float[3] s_in, float[3] xi) => (float[3] s_out, float[3] yi) {
    a = Add (s_in, xi)
    s_out = Tanh (a)
    yi = Mul (s_out, s_out)
  }> (s0, x)
})";
  constexpr const char* kLists = R"(
lists (float[N] x, seq(float[N]) all) => (int64 n, seq(float[N]) allN, string[1] text) {
  allN = SequenceInsert (all, x)
  n = SequenceLength (allN)
  one = Constant <value = int64[1] {1}> ()
  number = Reshape (n, one)
  text = Cast <to = 8> (number)
})";
  std::vector<StreamModel> all = {
      {{"windows", kWindows, {}, {}}, {1, 5}, 1, 4, 2, true},
      {{"over time", kOverTime, {}, {}}, {1, 4, 6}, 2, 0, 0, true},
      {{"steps", kSteps, {}, {}}, {5, 3}, 0, 0, 0, false, {{"s0", floats({3})}}},
      {{"lists", kLists, {}, {}}, {3}, 0, 2, 0, false},
  };
  for (StreamModel& one : all) {
    one.model.text = kHeader + one.model.text;
    one.model.settings = {{"threads", "1"}, {"jit", "off"}};
    one.model.inputs = {{"x", floats(one.chunk)}};
  }
  return all;
}

}  // namespace treadle::faults
