#include "ir/text.h"

#include <gtest/gtest.h>

#include "support/proto_bytes.h"
#include "wire/parse.h"
#include "wire/serialize.h"

namespace treadle::ir {
namespace {

template <class Message>
std::string binary(std::string_view text) {
  TextStorage storage;
  auto message = parse_text<Message>(text, storage);
  EXPECT_TRUE(message.ok()) << message.error().to_string();
  return message.ok() ? wire::serialize(*message).value() : "";
}

// Message -> text -> message.
template <class Message>
std::string again(const std::string& bytes) {
  Message message;
  Arena arena;
  EXPECT_TRUE(wire::merge(bytes, message, arena).ok());
  return binary<Message>(print_text(message));
}

std::string error_of(std::string_view text) {
  TextStorage storage;
  auto message = parse_text<wire::ModelProto>(text, storage);
  return message.ok() ? "no error" : message.error().to_string();
}

constexpr std::string_view kModel = R"(
<
   ir_version: 8,
   opset_import: ["" : 17, "local" : 1],
   producer_name: "me",
   metadata_props: ["k": "a \"quoted\" \\ one"]
>
agraph (float[N, 128] X, float[128,10] W = ["location": "w.bin"], optional(seq(map(int64, string[]))) M) => (float[N,10] C)
   <float[10] B = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1e1}, float[N,10] T, sparse_tensor(float[3,4]) S = (float[2] {1, 2}, int64[2] {0, 5})>
{
   # a comment
   [first] T = MatMul(X, W)
   C = local.f:over <alpha: float = 2, axes: ints = [], s = "x", big = [1, -9223372036854775808]> (T, , "a b")
   D = If (cond) <
      then_branch = then_graph () => (y) { y = Constant <value = float16[2] {15360, 1.5}> () },
      else_branch: graph = "else/graph" () => (y) { y = Constant <value_float = -inf> () }
   >
}
<domain: "local", overload: "over", opset_import: ["" : 17], doc_string: "a function">
f <alpha, beta: float = 1.0> (float[N] x, y, z) => (r) <float[N] q>
{
   q = Mul <a: float = @alpha> (x, y)
   r = Add (q, z)
}
)";

TEST(Text, ReadsBackItsOutput) {
  const std::string bytes = binary<wire::ModelProto>(kModel);
  EXPECT_GT(bytes.size(), 500u);
  EXPECT_EQ(again<wire::ModelProto>(bytes), bytes);
}

TEST(Text, ReadsANode) {
  const std::string expected = ProtoBytes()
                                   .bytes(1, "x")
                                   .bytes(1, "")
                                   .bytes(2, "y")
                                   .bytes(3, "n")
                                   .bytes(4, "Add")
                                   .message(5, ProtoBytes().bytes(1, "axis").varint(3, ~uint64_t{0}).varint(20, 2))
                                   .bytes(7, "a.b")
                                   .str();
  EXPECT_EQ(binary<wire::NodeProto>("[n] y = a.b.Add <axis = -1> (x, \"\")"), expected);
  EXPECT_EQ(binary<wire::NodeProto>("[\"n\"]y=a . b.Add(x,,)<axis:int=-1>#end"), expected);
}

TEST(Text, ReadsNumbers) {
  const auto value = [](const ProtoBytes& field, int type) {
    return ProtoBytes()
        .bytes(4, "A")
        .message(5, ProtoBytes().bytes(1, "v").append(field.str()).varint(20, static_cast<uint64_t>(type)))
        .bytes(7, "")
        .str();
  };
  const auto read = [](std::string_view text) { return binary<wire::NodeProto>(fmt::format("= A <v{}> ()", text)); };
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(read(" = 1."), value(ProtoBytes().fixed32(2, 1), 1));
  EXPECT_EQ(read(": float = -0"), value(ProtoBytes().fixed32(2, -0.0f), 1));
  EXPECT_EQ(read(" = 1E-3"), value(ProtoBytes().fixed32(2, 1e-3f), 1));
  EXPECT_EQ(read(" = -Infinity"), value(ProtoBytes().fixed32(2, -infinity), 1));
  EXPECT_EQ(read(" = 1e-60"), value(ProtoBytes().fixed32(2, 0), 1));
  EXPECT_EQ(read(" = nan(0x7fa00001)"), value(ProtoBytes().fixed32(2, std::bit_cast<float>(0x7fa00001)), 1));
  EXPECT_EQ(read(" = 0x10"), value(ProtoBytes().varint(3, 16), 2));
  EXPECT_EQ(read(" = 9223372036854775807"), value(ProtoBytes().varint(3, ~uint64_t{0} >> 1), 2));
  EXPECT_EQ(read(" = [1, 2.5]"), value(ProtoBytes().fixed32(7, 1).fixed32(7, 2.5), 6));
}

TEST(Text, KeepsPartsThatTheSyntaxCannotExpress) {
  const ProtoBytes tensor = ProtoBytes()
                                .varint(1, 2)
                                .varint(2, 1)
                                .bytes(4, raw_bytes<float>({1, 2}))
                                .bytes(8, "w")
                                .bytes(9, raw_bytes<float>({3, 4}))
                                .bytes(12, "two contents");
  const ProtoBytes typed = ProtoBytes().varint(1, 1).varint(2, 6).bytes(5, "\x05").bytes(8, "t");
  const ProtoBytes raw = ProtoBytes().varint(1, 1).varint(2, 22).bytes(8, "packed").bytes(9, "\x7f");
  const ProtoBytes odd = ProtoBytes().varint(2, 1).bytes(8, "odd").bytes(9, "abc");
  const ProtoBytes dim = ProtoBytes().varint(1, 3).bytes(3, "DATA_BATCH");
  const ProtoBytes type =
      ProtoBytes().message(1, ProtoBytes().varint(1, 1).message(2, ProtoBytes().message(1, dim))).bytes(6, "IMAGE");
  const ProtoBytes strange_type = ProtoBytes().message(1, ProtoBytes().varint(1, 77)).message(4, ProtoBytes());
  const ProtoBytes node = ProtoBytes()
                              .bytes(4, "Add")
                              .message(5, ProtoBytes().bytes(1, "f").varint(20, 1))
                              .message(5, ProtoBytes().bytes(1, "i").varint(3, 3))
                              .message(5, ProtoBytes().bytes(1, "a-b").varint(3, 3).bytes(4, "\xff").varint(20, 3))
                              .message(5, ProtoBytes().bytes(1, "r").varint(20, 7).bytes(21, "outer"))
                              .message(5, ProtoBytes().varint(3, 1).varint(20, 2))
                              .message(5, ProtoBytes().bytes(1, "").varint(3, 1).varint(20, 2))
                              .bytes(6, "two\nlines")
                              .bytes(7, "")
                              .message(9, ProtoBytes().bytes(1, "k").bytes(2, "v"))
                              .bytes(10, "\x0a\x01x")
                              .varint(55, 1);
  const ProtoBytes graph =
      ProtoBytes()
          .message(1, node)
          .bytes(2, "float")
          .message(5, tensor)
          .message(5, typed)
          .message(5, raw)
          .message(5, odd)
          .message(11, ProtoBytes().bytes(1, "x").message(2, type).bytes(3, "an image"))
          .message(12, ProtoBytes().bytes(1, "seq").message(2, strange_type))
          .message(14, ProtoBytes().bytes(1, "x").message(2, ProtoBytes().bytes(1, "SCALE_TENSOR").bytes(2, "s")));
  const std::string model = ProtoBytes()
                                .varint(1, 8)
                                .bytes(2, "")
                                .message(7, graph)
                                .message(8, ProtoBytes().varint(2, 17))
                                .bytes(20, "\x0a\x00")
                                .str();
  EXPECT_EQ(again<wire::ModelProto>(model), model);
}

TEST(Text, KeepsEmptyNamesOfSparseTensors) {
  const ProtoBytes absent = ProtoBytes().varint(2, 1), present = ProtoBytes().varint(2, 1).bytes(8, "");
  for (const ProtoBytes& values : {absent, present}) {
    for (const ProtoBytes& other : {absent, present}) {
      const ProtoBytes sparse = ProtoBytes().message(1, values).message(2, other);
      const std::string model =
          ProtoBytes().varint(1, 8).message(7, ProtoBytes().bytes(2, "g").message(15, sparse)).str();
      EXPECT_EQ(again<wire::ModelProto>(model), model);
    }
  }
}

TEST(Text, KeepsEmptyNamesOfFunctionAttributes) {
  for (const ProtoBytes& attribute : {ProtoBytes(), ProtoBytes().bytes(1, "")}) {
    const ProtoBytes node = ProtoBytes().bytes(4, "Relu").message(5, attribute);
    const ProtoBytes function = ProtoBytes().bytes(1, "f").message(7, node).message(11, attribute);
    const std::string model = ProtoBytes().varint(1, 8).message(25, function).str();
    EXPECT_EQ(again<wire::ModelProto>(model), model);
  }
}

TEST(Text, KeepsListsOfGraphsWithoutATypeOrAName) {
  const ProtoBytes g = ProtoBytes().bytes(2, "");
  const ProtoBytes attribute = ProtoBytes().bytes(1, "a").message(11, g).message(11, ProtoBytes());
  const ProtoBytes node = ProtoBytes().bytes(4, "Relu").message(5, attribute);
  const std::string model = ProtoBytes().varint(1, 8).message(7, ProtoBytes().message(1, node).bytes(2, "m")).str();
  EXPECT_EQ(again<wire::ModelProto>(model), model);
}

TEST(Text, TellsWhereItIsWrong) {
  EXPECT_EQ(error_of("<ir_version: 8>\ng (float[N] x) => () {\n   T = MatMul[X, W]\n}"),
            "3:14: expected '(', found '['\n  3 |    T = MatMul[X, W]\n    |              ^");
  EXPECT_EQ(error_of("<ir_version: \"8\">"),
            "1:14: expected a number, found '\"'\n  1 | <ir_version: \"8\">\n    |              ^");
  EXPECT_NE(error_of("<version: 8>").find("1:2: a model has no field \"version\""), std::string::npos);
  EXPECT_NE(error_of("g () => () { y = A <a: ints = 1> () }").find("1:31: expected ints, found an int"),
            std::string::npos);
  EXPECT_NE(error_of("g () => () { \"y").find("1:14: this string does not end"), std::string::npos);
  EXPECT_NE(error_of("g () => () <int8[1] w = {1, 99999999999}> {}").find("1:29: 99999999999 does not fit int8"),
            std::string::npos);
  EXPECT_NE(error_of("g () => () { }\n#@ raw\n").find("no error"), std::string::npos);
  EXPECT_NE(error_of("g (\n#@ raw\nfloat x) => () { }").find("2:1: the annotation \"raw\" does not belong to a value"),
            std::string::npos);
}

TEST(Text, LimitsNesting) {
  std::string text = "g () => () ";
  for (int i = 0; i < 10'000; ++i) text += "{ = If () <a = g () => () ";
  EXPECT_NE(error_of(text).find("nested more than 256 deep"), std::string::npos);
  std::string type = "g (";
  for (int i = 0; i < 10'000; ++i) type += "seq(";
  EXPECT_NE(error_of(type).find("nested more than 256 deep"), std::string::npos);
}

TEST(Text, LimitsMemory) {
  TextStorage storage;
  wire::Limits limits;
  limits.structure_bytes = 100'000;
  std::string text = "g () => () {";
  for (int i = 0; i < 10'000; ++i) text += "=A()";
  auto model = parse_text<wire::ModelProto>(text + "}", storage, limits);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code(), Code::kLimit);
}

TEST(Text, LeavesOutValuesOfLargeTensors) {
  TextStorage storage;
  auto model = parse_text<wire::ModelProto>("g () => () <float[3] w = {1, 2, 3}, float[2] v = {1, 2}> {}", storage);
  ASSERT_TRUE(model.ok());
  const std::string text = print_text(*model, {.max_elements = 2});
  EXPECT_NE(text.find("float[3] w = ...,"), std::string::npos) << text;
  EXPECT_NE(text.find("float[2] v = {1, 2}"), std::string::npos) << text;
  EXPECT_TRUE(parse_text<wire::ModelProto>(text, storage).ok());
}

TEST(Text, IsToldFromBinary) {
  for (const std::string_view text : {"<ir_version: 8>", "  # c\n g", "g()", "\xef\xbb\xbfg ()", "\"g\" ()"}) {
    EXPECT_TRUE(looks_like_text(text)) << text;
  }
  const std::string model = ProtoBytes().message(8, ProtoBytes().bytes(1, "B").varint(2, 17)).str();
  for (const std::string_view bytes :
       {std::string_view(model), std::string_view("\x08\x07\x12\x01x"), std::string_view()}) {
    EXPECT_FALSE(looks_like_text(bytes));
  }
}

TEST(Text, IsReadInLinearTime) {
  std::string text = "g (float x0) => (float x0) {";
  for (int i = 0; i < 100'000; ++i) text += fmt::format("x{} = Add <axis: int = {}> (x{}, x0)\n", i + 1, i, i);
  TextStorage storage;
  auto model = parse_text<wire::ModelProto>(text + "}", storage);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->graph->nodes.size(), 100'000u);
}

}  // namespace
}  // namespace treadle::ir
