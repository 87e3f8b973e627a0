// Models made to do harm, or found by fuzzing: both tiers refuse them, and use no memory that neither the file nor the
// caller justifies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "ir/text.h"
#include "session/session.h"
#include "support/model_bytes.h"
#include "treadle/treadle.h"
#include "wire/serialize.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHeader = "<ir_version: 8, opset_import: [\"\" : 17]>\n";

std::string bytes_of(std::string_view nodes, std::string_view header = kHeader) {
  ir::TextStorage storage;
  const std::string text = std::string(header) + "main (float[2] x) => (y) {" + std::string(nodes) + "}";
  auto model = ir::parse_text<wire::ModelProto>(text, storage);
  EXPECT_TRUE(model.ok()) << model.error().to_string();
  return *wire::serialize(*model);
}

// The result of loading, and of running with x = {1, 2}, at most 10,000 iterations and 16 MB.
std::string outcome(const std::string& bytes, std::initializer_list<Tier> tiers = {Tier::kReference, Tier::kProgram}) {
  std::string said;
  for (const Tier tier : tiers) {
    SessionOptions options;
    options.tier = tier;
    options.threads = 1;
    auto session = Session::from_bytes(std::as_bytes(std::span(bytes)), options);
    Status status = session.ok() ? Status() : std::move(session).status();
    if (status.ok()) {
      const float x[] = {1, 2};
      const AnyValue fed = Tensor::of_float(x);
      const std::vector<Feed> feeds = {{"x", &fed}};
      RunOptions limits;
      limits.iteration_limit = 10'000;
      limits.memory_limit = size_t{16} << 20;
      std::vector<AnyValue> results;
      status = (*session)->run(feeds, {}, results, limits);
    }
    EXPECT_NE(status.code(), Code::kInternal) << status.to_string();
    said += status.ok() ? "ran\n" : status.to_string() + "\n";
  }
  return said;
}

int64_t peak_memory() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return int64_t{used.ru_maxrss} * 1024;
}

TEST(HostileModels, AConditionThatIsNoBool) {
  EXPECT_THAT(outcome(bytes_of("c = Constant <value = int64 {3}> ()\n"
                               "y = If (c) <then_branch = t () => (u) { u = Neg (x) },"
                               "            else_branch = e () => (v) { v = Abs (x) }>")),
              HasSubstr("one bool"));
}

TEST(HostileModels, ABodysConditionThatIsNoBool) {
  constexpr std::string_view kLoop = "n = Constant <value_int = 3> ()\n c = Constant <value = bool {1}> ()\n";
  EXPECT_THAT(outcome(bytes_of(std::string(kLoop) +
                               "y = Loop (n, c, n) <body = b (int64 i, bool g, int64 s) => (int64 t, int64 u) {"
                               "  t = Add (s, i)\n u = Identity (t) }>")),
              ::testing::Not(HasSubstr("ran")));
  EXPECT_THAT(outcome(bytes_of(std::string(kLoop) + "z = Constant <value_ints: ints = []> ()\n"
                                                    "y = Loop (n, c, n) <body = b (int64 i, bool g, int64 s) =>"
                                                    "  (bool[0] t, int64 u) { t = Greater (z, i)\n u = Add (s, i) }>")),
              ::testing::Not(HasSubstr("ran")));
}

TEST(HostileModels, AnAxisOfABroadcastThatIsNone) {
  EXPECT_EQ(outcome(bytes_of("y = Add <axis = 5> (x, x)", "<ir_version: 8, opset_import: [\"\" : 6]>\n")),
            "ran\nran\n");
}

TEST(HostileModels, AShapeThatIsAMatrix) {
  EXPECT_THAT(outcome(bytes_of("n = Constant <value = int64[1,2] {2, 2}> ()\n y = Expand (x, n)")),
              ::testing::Not(HasSubstr("ran")));
}

TEST(HostileModels, ConstantsOfUnlikeTypes) {
  EXPECT_THAT(outcome(bytes_of("c = Constant <value = bool {1}> ()\n d = Constant <value = double {1}> ()\n"
                               "e = Constant <value = float {1}> ()\n y = Where (c, d, e)")),
              HasSubstr("expected tensor(double)"));
}

TEST(HostileModels, ASequenceWhereATensorBelongs) {
  EXPECT_THAT(outcome(bytes_of("s = SequenceConstruct (x, x)\n y = Asin (s)")), HasSubstr("expected tensor(float)"));
}

TEST(HostileModels, AnArgumentOfAListLeftOut) {
  EXPECT_THAT(outcome(bytes_of("s = SequenceConstruct (x, , x)\n y = SequenceLength (s)")),
              HasSubstr("input 1 (inputs) is required, but left out"));
}

TEST(HostileModels, AnArgumentThatAFunctionNeedsLeftOut) {
  const std::string bytes = bytes_of(
      "y = local.f (x) }\n<domain: \"local\", opset_import: [\"\" : 21]>\n"
      "f (a, b) => (c) { k = Constant <value = float[2] {1, 2}> ()\n d = Add (a, k)\n c = LpNormalization (b)",
      "<ir_version: 10, opset_import: [\"\" : 21, \"local\" : 1]>\n");
  EXPECT_THAT(outcome(bytes), HasSubstr("input 0 (input) is required, but the function's call leaves out \"b\""));
}

TEST(HostileModels, ARequiredOutputWithoutAName) {
  for (const std::string_view node : {"\"\" = Bernoulli (x)", "\"\", i = TopK (x, k)"}) {
    EXPECT_THAT(outcome(bytes_of("k = Constant <value_ints = [1]> ()\n y = Neg (x)\n " + std::string(node))),
                HasSubstr("is required, but left out"));
  }
}

TEST(HostileModels, AnInputThatIsAnOptionalOfNothing) {
  ir::TextStorage storage;
  const std::string text = std::string(kHeader) + "main (float[2] x) => (y) { y = Neg (x) }";
  auto model = ir::parse_text<wire::ModelProto>(text, storage);
  ASSERT_TRUE(model.ok());
  wire::ElementTypeProto nothing;
  wire::TypeProto& type = *model->graph->inputs[0].type;
  type.tensor.reset();
  type.optional = &nothing;
  EXPECT_THAT(outcome(*wire::serialize(*model)), HasSubstr("leaves open what it holds"));
}

TEST(HostileModels, SequencesWithoutTime) {
  // The rank of `rows` is unknown at first.
  const std::string bytes = bytes_of(
      "n = Shape (x)\n rows = Reshape (x, n)\n lens = Constant <value = int64[2] {1, 1}> ()\n"
      "s, y = Scan (lens, x, rows) <num_scan_inputs = 1, body = b (float p, float e) => (float q, float o) {"
      "  q = Add (p, e)\n o = Identity (q) }>",
      "<ir_version: 3, opset_import: [\"\" : 8]>\n");
  EXPECT_THAT(outcome(bytes), ::testing::Not(HasSubstr("ran\n")));
}

TEST(HostileModels, AShapeOfABillionSizes) {
  const std::string bytes = bytes_of(
      "n = Constant <value_ints = [1000000000]> ()\n sizes = ConstantOfShape <value = int64[1] {1}> (n)\n"
      "y = ConstantOfShape (sizes)");
  EXPECT_THAT(outcome(bytes), ::testing::Not(HasSubstr("ran\n")));
}

TEST(HostileModels, AStringToFillATensorWith) {
  EXPECT_THAT(outcome(bytes_of("n = Constant <value_ints = [4, 2]> ()\n"
                               "y = ConstantOfShape <value = string[1] {\"CRD\"}> (n)")),
              HasSubstr("attribute value is of type string"));
}

TEST(HostileModels, ALoopWithoutAPlaceForItsCondition) {
  const std::string bytes = bytes_of(
      "n = Constant <value_int = 3> ()\n"
      "y = Loop (n) <body = b (int64 i, bool c) => (bool c, int64 r) { r = Add (i, i) }>");
  EXPECT_THAT(outcome(bytes), HasSubstr("ran"));
  for (const unsigned flags : {0u, unsigned{TREADLE_INFER_AS_ONNX}}) {
    char* typed = nullptr;
    size_t size = 0;
    EXPECT_EQ(treadle_model_infer(nullptr, bytes.data(), bytes.size(), flags, &typed, &size), nullptr);
    treadle_free(typed);
  }
}

TEST(HostileModels, RowsOfMoreElementsThanBytesCanBeCounted) {
  EXPECT_THAT(outcome(bytes_of("m = Constant <value_int = 3> ()\n c = Constant <value = bool {1}> ()\n"
                               "y = Loop (m, c) <body = b (int64 i, bool g) => (bool h, float[k] row) {"
                               "  n = Constant <value_ints = [3000000000000000000]> ()\n"
                               "  h = Identity (g)\n row = ConstantOfShape (n) }>")),
              ::testing::Not(HasSubstr("ran")));
}

TEST(HostileModels, CountsThatAreNoIntegers) {
  const std::string_view tile = "n = Constant <value = float {1e38}> ()\n a = Constant <value = float {nan}> ()\n";
  const std::string said =
      outcome(bytes_of(std::string(tile) + "y = Tile (x, n, a)", "<ir_version: 8, opset_import: [\"\" : 1]>\n"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("ran")));
}

TEST(HostileModels, ABillionElements) {
  const int64_t before = peak_memory();
  for (const std::string_view nodes : {"n = Constant <value_ints = [1000, 1000, 1000]> ()\n y = ConstantOfShape (n)",
                                       "n = Constant <value_int = 1000000000> ()\n o = Constant <value_int = 1> ()\n"
                                       "z = Constant <value_int = 0> ()\n y = Range (z, n, o)",
                                       "n = Constant <value_ints = [1000000000, 2]> ()\n y = Expand (x, n)"}) {
    for (const Tier tier : {Tier::kReference, Tier::kProgram}) {
      EXPECT_THAT(outcome(bytes_of(nodes), {tier}), HasSubstr("the memory limit of 16777216 bytes"));
    }
  }
  EXPECT_LT(peak_memory() - before, int64_t{64} << 20);
}

// No tensor is large, but all together are. Operators that compute are counted for all types.
TEST(HostileModels, ManyTensorsThatAreLargeTogether) {
  const std::string rows =
      "m = Constant <value_int = 10000> ()\n t = Constant <value = bool {1}> ()\n"
      "n = Constant <value_ints = [1000]> ()\n r = ConstantOfShape (n)\n"
      "y = Loop (m, t) <body = b (int64 i, bool g) => (bool h, float[1000] s) {"
      "  h = Identity (g)\n f = Cast <to = 1> (i)\n s = Add (r, f) }>";
  const std::string sequence =
      "m = Constant <value_int = 10000> ()\n t = Constant <value = bool {1}> ()\n"
      "n = Constant <value_ints = [1000]> ()\n e = SequenceEmpty ()\n"
      "q = Loop (m, t, e) <body = b (int64 i, bool g, seq(float[1000]) s) => (bool h, seq(float[1000]) u) {"
      "  h = Identity (g)\n f = Cast <to = 1> (i)\n r = ConstantOfShape (n)\n v = Add (r, f)\n"
      "  u = SequenceInsert (s, v) }>\n"
      "y = ConcatFromSequence <axis = 0> (q)";
  for (const std::string& nodes : {rows, sequence}) {
    for (const Tier tier : {Tier::kReference, Tier::kProgram}) {
      EXPECT_THAT(outcome(bytes_of(nodes), {tier}), HasSubstr("the memory limit of 16777216 bytes")) << nodes;
    }
  }
}

// The planned tier only needs their number.
TEST(HostileModels, AMillionStrings) {
  const std::string nodes =
      "n = Constant <value_ints = [1000, 1000]> ()\n s = Constant <value_strings = [\"a\"]> ()\n z = Expand (s, n)\n"
      "y = Shape (z)";
  EXPECT_THAT(outcome(bytes_of(nodes), {Tier::kReference}), HasSubstr("the memory limit of 16777216 bytes"));
}

// A run within the planned tier's limits stays within the reference interpreter's: memory is freed with the values that
// hold it.
TEST(HostileModels, ALoopThatTakesItsMemoryAgain) {
  const std::string state =
      "m = Constant <value_int = 10000> ()\n t = Constant <value = bool {1}> ()\n"
      "n = Constant <value_ints = [1000]> ()\n r = ConstantOfShape (n)\n"
      "y = Loop (m, t, r) <body = b (int64 i, bool g, float[1000] s) => (bool h, float[1000] u) {"
      "  h = Identity (g)\n u = Add (s, s) }>";
  EXPECT_EQ(outcome(bytes_of(state)), "ran\nran\n");
}

// The loop to which an LSTM is lowered counts its iterations like any other.
TEST(HostileModels, ALimitOfIterationsInALowering) {
  const std::string nodes =
      "n = Constant <value_ints = [10001, 1, 1]> ()\n o = Constant <value_ints = [2, 1, 1]> ()\n"
      "r = Reshape (x, o)\n s = Tile (r, n)\n"
      "w = Constant <value = float[1,4,1] {1, 1, 1, 1}> ()\n"
      "y = LSTM <hidden_size = 1> (s, w, w)";
  for (const Tier tier : {Tier::kReference, Tier::kProgram}) {
    EXPECT_THAT(outcome(bytes_of(nodes), {tier}), HasSubstr("the limit of 10000 iterations was reached"));
  }
}

TEST(HostileModels, ABillionElementsThatAreNotThere) {
  using namespace onnx_bytes;  // NOLINT(google-build-using-namespace)
  const auto with = [](const ProtoBytes& graph_bytes) { return model_bytes(graph_bytes); };
  const int64_t before = peak_memory();
  const GraphParts rest = {.nodes = {node("Add", {"x", "w"}, {"y"})}, .inputs = {value("x")}, .outputs = {value("y")}};
  GraphParts dense = rest, sparse = rest;
  dense.initializers = {tensor("w", 1, {1000, 1000, 1000}, "1234")};
  EXPECT_THAT(outcome(with(graph(dense))), HasSubstr("expected 4000000000 bytes"));
  sparse.sparse_initializers = {ProtoBytes()
                                    .message(1, tensor("w", 1, {1}, "1234"))
                                    .message(2, tensor("", 7, {1}, raw_bytes<int64_t>({5})))
                                    .varint(3, 1000)
                                    .varint(3, 1000)
                                    .varint(3, 1000)};
  EXPECT_THAT(outcome(with(graph(sparse))), HasSubstr("would take more than"));
  EXPECT_LT(peak_memory() - before, int64_t{64} << 20);
}

TEST(HostileModels, SizesWhoseProductOverflows) {
  EXPECT_THAT(outcome(bytes_of("n = Constant <value_ints = [4611686018427387904, 4611686018427387904]> ()\n"
                               "y = ConstantOfShape (n)")),
              ::testing::Not(HasSubstr("ran")));
  EXPECT_THAT(outcome(bytes_of("n = Constant <value_ints = [9223372036854775807]> ()\n y = Tile (x, n)")),
              ::testing::Not(HasSubstr("ran")));
  EXPECT_THAT(outcome(bytes_of("p = Constant <value_ints = [9223372036854775807, 9223372036854775807]> ()\n"
                               "y = Pad (x, p)")),
              ::testing::Not(HasSubstr("ran")));
}

}  // namespace
}  // namespace treadle
