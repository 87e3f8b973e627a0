// libonnxruntime.so as programs use it: by its two symbols and the table of functions. If TREADLE_TEST_ONNXRUNTIME
// names another libonnxruntime.so, the tests run with that one (tests/python/test_function_table.py).

#include "tests/dropin/function_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>

namespace {

using namespace treadle::table_tests;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const char* const kAdd = "g (float[N, 3] x, float[3] b) => (float[N, 3] y) { y = Add(x, b) }";
// Runs until it is stopped.
const char* const kEndless = R"(g (float[4] x) => (float[4] y) {
  yes = Constant <value = bool {1}> ()
  y = Loop <body = b (int64 i, bool go, float[4] s) => (bool on, float[4] t) { on = Identity(go) t = Cos(s) }> (, yes, x)
})";

TEST_F(FunctionTable, VersionsGiveTheOneTable) {
  EXPECT_EQ(base()->GetApi(0), nullptr);
  EXPECT_EQ(base()->GetApi(1), base()->GetApi(23));
  EXPECT_EQ(base()->GetApi(1000), nullptr);
  EXPECT_THAT(base()->GetVersionString(), testing::StartsWith("1."));
}

TEST_F(FunctionTable, EveryReleaseTakesNull) {
  ort().ReleaseValue(nullptr);
  ort().ReleaseSession(nullptr);
  ort().ReleaseSessionOptions(nullptr);
  ort().ReleaseStatus(nullptr);
  ort().ReleaseTypeInfo(nullptr);
  ort().ReleaseTensorTypeAndShapeInfo(nullptr);
  ort().ReleaseRunOptions(nullptr);
  ort().ReleaseMemoryInfo(nullptr);
}

TEST_F(FunctionTable, SessionsDescribeTheirInputs) {
  const Session session = open(model_of(kAdd));
  ASSERT_EQ(ask<size_t>(ort().SessionGetInputCount, session.get()), 2U);
  ASSERT_EQ(ask<size_t>(ort().SessionGetOutputCount, session.get()), 1U);
  EXPECT_EQ(ask<size_t>(ort().SessionGetOverridableInitializerCount, session.get()), 0U);
  EXPECT_EQ(take(ask<char*>(ort().SessionGetInputName, session.get(), 1, allocator())), "b");
  EXPECT_EQ(take(ask<char*>(ort().SessionGetOutputName, session.get(), 0, allocator())), "y");
  const auto type = make<TypeInfo>(ort().SessionGetInputTypeInfo, session.get(), 0);
  EXPECT_EQ(ask<ONNXType>(ort().GetOnnxTypeFromTypeInfo, type.get()), ONNX_TYPE_TENSOR);
  const auto* info = ask<const OrtTensorTypeAndShapeInfo*>(ort().CastTypeInfoToTensorInfo, type.get());
  EXPECT_EQ(ask<ONNXTensorElementDataType>(ort().GetTensorElementType, info), kFloat);
  EXPECT_THAT(dims(info), ElementsAre(-1, 3));
  const char* names[2] = {};
  check(ort().GetSymbolicDimensions(info, names, 2));
  EXPECT_STREQ(names[0], "N");
  EXPECT_STREQ(names[1], "");
  EXPECT_EQ(ask<const OrtSequenceTypeInfo*>(ort().CastTypeInfoToSequenceTypeInfo, type.get()), nullptr);
}

TEST_F(FunctionTable, RunsOnBorrowedMemory) {
  const Session session = open(model_of(kAdd));
  std::vector<float> x{1, 2, 3, 4, 5, 6}, b{10, 20, 30};
  const Value xs = lend(x, {2, 3}, kFloat), bs = lend(b, {3}, kFloat);
  auto results = run(session.get(), {"x", "b"}, {xs.get(), bs.get()}, {"y"});
  EXPECT_THAT(elements<float>(results[0].get()), ElementsAre(11, 22, 33, 14, 25, 36));
  x[0] = 100;  // the run reads it again
  results = run(session.get(), {"b", "x"}, {bs.get(), xs.get()}, {"y"});
  EXPECT_EQ(elements<float>(results[0].get())[0], 110);
}

TEST_F(FunctionTable, ResultsAreWrittenWhereTheCallerSays) {
  const Session session = open(model_of(kAdd));
  std::vector<float> x{1, 2, 3}, b{10, 20, 30}, y(3);
  const Value xs = lend(x, {1, 3}, kFloat), bs = lend(b, {3}, kFloat), ys = lend(y, {1, 3}, kFloat);
  const char* const names[] = {"x", "b"};
  const OrtValue* const inputs[] = {xs.get(), bs.get()};
  const char* const output = "y";
  for (int round = 0; round < 3; ++round) {
    x[0] = static_cast<float>(round);
    OrtValue* outputs[] = {ys.get()};
    check(ort().Run(session.get(), nullptr, names, inputs, 2, &output, 1, outputs));
    EXPECT_EQ(outputs[0], ys.get());
    EXPECT_THAT(y, ElementsAre(10.0F + static_cast<float>(round), 22, 33));
  }
}

// Runs of changing sizes are planned for any size, and write their results elsewhere first. A decoder's cache is input
// and output in one value.
TEST_F(FunctionTable, ResultsOfAnySizeAreWrittenWhereTheCallerSays) {
  const Session session =
      open(model_of("g (float[N, M] x, float[N, M] c) => (float[N, M] y, float[N, M] d) {"
                    "  d = Add(x, c)  y = Neg(d) }"));
  const char* const names[] = {"x", "c"};
  const char* const output_names[] = {"y", "d"};
  for (int64_t rows = 1; rows < 5; ++rows) {
    const auto count = static_cast<size_t>(rows * 2);
    std::vector<float> x(count, 1), c(count, 10), y(count);
    const Value xs = lend(x, {rows, 2}, kFloat), cs = lend(c, {rows, 2}, kFloat), ys = lend(y, {rows, 2}, kFloat);
    const OrtValue* const inputs[] = {xs.get(), cs.get()};
    OrtValue* outputs[] = {ys.get(), cs.get()};
    for (int round = 1; round < 4; ++round) {
      check(ort().Run(session.get(), nullptr, names, inputs, 2, output_names, 2, outputs));
      EXPECT_THAT(c, Each(10.0F + static_cast<float>(round)));
      EXPECT_THAT(y, Each(-10.0F - static_cast<float>(round)));
    }
  }
}

TEST_F(FunctionTable, AResultOfOtherSizesThanItsPlaceIsAnError) {
  const Session session = open(model_of(kAdd));
  std::vector<float> x{1, 2, 3}, b{10, 20, 30}, y(6);
  const Value xs = lend(x, {1, 3}, kFloat), bs = lend(b, {3}, kFloat), ys = lend(y, {2, 3}, kFloat);
  const char* const names[] = {"x", "b"};
  const OrtValue* const inputs[] = {xs.get(), bs.get()};
  const char* const output = "y";
  OrtValue* outputs[] = {ys.get()};
  EXPECT_NE(code_of([&] { check(ort().Run(session.get(), nullptr, names, inputs, 2, &output, 1, outputs)); }), ORT_OK);
}

// The result of a run stays when its inputs are changed or released.
TEST_F(FunctionTable, ResultsAreNotTheCallersMemory) {
  const Session session = open(model_of("g (float[3] x) => (float[3] y, float[3] z) { y = Identity(x) z = Neg(x) }"));
  std::vector<float> x{1, 2, 3};
  Value xs = lend(x, {3}, kFloat);
  const auto results = run(session.get(), {"x"}, {xs.get()}, {"y", "z"});
  xs.reset();
  x.assign(3, 0);
  EXPECT_THAT(elements<float>(results[0].get()), ElementsAre(1, 2, 3));
  EXPECT_THAT(elements<float>(results[1].get()), ElementsAre(-1, -2, -3));
}

// A result may be an initializer; writing to the result leaves the model as it is.
TEST_F(FunctionTable, WritingToAResultLeavesTheModelAlone) {
  const Session session =
      open(model_of("g (float[2] x) => (float[2] y, float[2] c) <float[2] c = {5, 6}> { y = Add(x, c) }"));
  std::vector<float> x{1, 2};
  const Value xs = lend(x, {2}, kFloat);
  const auto first = run(session.get(), {"x"}, {xs.get()}, {"y", "c"});
  static_cast<float*>(ask<void*>(ort().GetTensorMutableData, first[1].get()))[0] = 1000;
  const auto second = run(session.get(), {"x"}, {xs.get()}, {"y", "c"});
  EXPECT_THAT(elements<float>(second[0].get()), ElementsAre(6, 8));
  EXPECT_THAT(elements<float>(second[1].get()), ElementsAre(5, 6));
}

TEST_F(FunctionTable, Texts) {
  const Session session = open(model_of("g (string[N] x) => (string[N] y) { y = Identity(x) }"));
  const int64_t count = 3;
  const Value value = make<Value>(ort().CreateTensorAsOrtValue, allocator(), &count, 1, kString);
  const char* const given[] = {"eins", "", "drei"};
  check(ort().FillStringTensor(value.get(), given, 3));
  check(ort().FillStringTensorElement(value.get(), "zwei", 1));
  std::memcpy(ask<char*>(ort().GetResizedStringTensorElementBuffer, value.get(), 2, 5), "fuenf", 5);
  const auto results = run(session.get(), {"x"}, {value.get()}, {"y"});
  EXPECT_THAT(texts(results[0].get(), 3), ElementsAre("eins", "zwei", "fuenf"));
  EXPECT_EQ(ask<size_t>(ort().GetStringTensorElementLength, results[0].get(), 2), 5U);
  std::string one(4, ' ');
  check(ort().GetStringTensorElement(results[0].get(), 4, 0, one.data()));
  EXPECT_EQ(one, "eins");
}

TEST_F(FunctionTable, SequencesAreMadeAndTaken) {
  const Session session = open(model_of(R"(g (seq(float[N]) s, float[N] x) => (seq(float[N]) t, int64 n) {
    t = SequenceInsert(s, x)
    n = SequenceLength(t)
  })"));
  const auto type = make<TypeInfo>(ort().SessionGetOutputTypeInfo, session.get(), 0);
  EXPECT_EQ(ask<ONNXType>(ort().GetOnnxTypeFromTypeInfo, type.get()), ONNX_TYPE_SEQUENCE);
  std::vector<float> a{1}, b{2, 3}, c{4, 5, 6};
  const Value av = lend(a, {1}, kFloat), bv = lend(b, {2}, kFloat), cv = lend(c, {3}, kFloat);
  const OrtValue* const parts[] = {av.get(), bv.get()};
  const Value sequence = make<Value>(ort().CreateValue, parts, 2, ONNX_TYPE_SEQUENCE);
  const auto results = run(session.get(), {"s", "x"}, {sequence.get(), cv.get()}, {"t", "n"});
  EXPECT_EQ(ask<ONNXType>(ort().GetValueType, results[0].get()), ONNX_TYPE_SEQUENCE);
  EXPECT_EQ(ask<size_t>(ort().GetValueCount, results[0].get()), 3U);
  const Value last = make<Value>(ort().GetValue, results[0].get(), 2, allocator());
  EXPECT_THAT(elements<float>(last.get()), ElementsAre(4, 5, 6));
  EXPECT_THAT(elements<int64_t>(results[1].get()), ElementsAre(3));
  const OrtValue* const nested[] = {sequence.get(), sequence.get()};
  EXPECT_NE(code_of([&] { make<Value>(ort().CreateValue, nested, 2, ONNX_TYPE_SEQUENCE); }), ORT_OK);
}

TEST_F(FunctionTable, MapsAreKeysAndValues) {
  const Session session = open(bytes_of(R"(<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]>
    g (float[N, 2] x) => (seq(map(int64, float)) y) { y = ai.onnx.ml.ZipMap <classlabels_int64s = [7, 9]> (x) })"));
  std::vector<float> x{1, 2, 3, 4};
  const Value xs = lend(x, {2, 2}, kFloat);
  const auto results = run(session.get(), {"x"}, {xs.get()}, {"y"});
  EXPECT_EQ(ask<size_t>(ort().GetValueCount, results[0].get()), 2U);
  const Value map = make<Value>(ort().GetValue, results[0].get(), 1, allocator());
  EXPECT_EQ(ask<ONNXType>(ort().GetValueType, map.get()), ONNX_TYPE_MAP);
  const Value keys = make<Value>(ort().GetValue, map.get(), 0, allocator());
  const Value values = make<Value>(ort().GetValue, map.get(), 1, allocator());
  EXPECT_THAT(elements<int64_t>(keys.get()), ElementsAre(7, 9));
  EXPECT_THAT(elements<float>(values.get()), ElementsAre(3, 4));
}

TEST_F(FunctionTable, AbsentOptionals) {
  const Session session =
      open(model_of("g (float[2] x) => (optional(float[2]) y, bool has) { y = Optional <type = float[2]> () has = "
                    "OptionalHasElement(y) }"));
  std::vector<float> x{1, 2};
  const Value xs = lend(x, {2}, kFloat);
  const auto results = run(session.get(), {"x"}, {xs.get()}, {"y"});
  EXPECT_EQ(ask<int>(ort().HasValue, results[0].get()), 0);
}

TEST_F(FunctionTable, ElementsOfHalfAByteArePacked) {
  const Session session = open(bytes_of(R"(<ir_version: 10, opset_import: ["" : 21]>
    g (int4[3] x) => (float[3] f, int4[3] y) { f = Cast <to = 1> (x) y = Cast <to = 22> (f) })"));
  std::vector<uint8_t> x{0xF7, 0x08};  // 7, -1, -8
  const Value xs = lend(x, {3}, kInt4);
  const auto results = run(session.get(), {"x"}, {xs.get()}, {"f", "y"});
  EXPECT_THAT(elements<float>(results[0].get()), ElementsAre(7, -1, -8));
  const auto* const packed = static_cast<const uint8_t*>(ask<void*>(ort().GetTensorMutableData, results[1].get()));
  EXPECT_EQ(packed[0], 0xF7);
  EXPECT_EQ(packed[1] & 0xF, 0x8);
}

TEST_F(FunctionTable, Metadata) {
  std::string text =
      "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"loom\", domain: \"org.tests\", "
      "model_version: 5, doc_string: \"what it is\", metadata_props: [\"a\" : \"1\", \"b\" : \"\"]>\n";
  const Session session = open(bytes_of(text + kAdd));
  const auto metadata = make<ModelMetadata>(ort().SessionGetModelMetadata, session.get());
  EXPECT_EQ(take(ask<char*>(ort().ModelMetadataGetProducerName, metadata.get(), allocator())), "loom");
  EXPECT_EQ(take(ask<char*>(ort().ModelMetadataGetGraphName, metadata.get(), allocator())), "g");
  EXPECT_EQ(take(ask<char*>(ort().ModelMetadataGetDomain, metadata.get(), allocator())), "org.tests");
  EXPECT_EQ(take(ask<char*>(ort().ModelMetadataGetDescription, metadata.get(), allocator())), "what it is");
  EXPECT_EQ(ask<int64_t>(ort().ModelMetadataGetVersion, metadata.get()), 5);
  EXPECT_EQ(take(ask<char*>(ort().ModelMetadataLookupCustomMetadataMap, metadata.get(), allocator(), "a")), "1");
  EXPECT_EQ(ask<char*>(ort().ModelMetadataLookupCustomMetadataMap, metadata.get(), allocator(), "c"), nullptr);
  char** keys = nullptr;
  int64_t count = 0;
  check(ort().ModelMetadataGetCustomMetadataMapKeys(metadata.get(), allocator(), &keys, &count));
  ASSERT_EQ(count, 2);
  for (int64_t i = 0; i < count; ++i) take(keys[i]);
  allocator()->Free(allocator(), keys);
}

TEST_F(FunctionTable, ErrorsHaveTheirNumbers) {
  EXPECT_EQ(code_of([] {
              const SessionOptions options = make<SessionOptions>(ort().CreateSessionOptions);
              make<Session>(ort().CreateSession, environment().get(), "/nowhere/model.onnx", options.get());
            }),
            ORT_NO_SUCHFILE);
  EXPECT_EQ(code_of([] { open("not a model at all"); }), ORT_INVALID_PROTOBUF);
  const Session session = open(model_of(kAdd));
  std::vector<float> x{1, 2, 3};
  const Value xs = lend(x, {1, 3}, kFloat);
  std::string message;
  EXPECT_EQ(code_of([&] { run(session.get(), {"q"}, {xs.get()}, {"y"}); }, &message), ORT_INVALID_ARGUMENT);
  EXPECT_THAT(message, HasSubstr("q"));
  EXPECT_EQ(code_of([&] { run(session.get(), {"x", "b"}, {xs.get(), xs.get()}, {"nothing"}); }), ORT_INVALID_ARGUMENT);
}

TEST_F(FunctionTable, RunsAreTerminated) {
  const Session session = open(model_of(kEndless));
  std::vector<float> x(4);
  const Value xs = lend(x, {4}, kFloat);
  const auto options = make<RunOptions>(ort().CreateRunOptions);
  std::thread stops([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    check(ort().RunOptionsSetTerminate(options.get()));
  });
  EXPECT_NE(code_of([&] { run(session.get(), {"x"}, {xs.get()}, {"y"}, options.get()); }), ORT_OK);
  stops.join();

  const Session add = open(model_of(kAdd));
  const Value rows = lend(x, {1, 3}, kFloat), row = lend(x, {3}, kFloat);
  const auto runs = [&] { run(add.get(), {"x", "b"}, {rows.get(), row.get()}, {"y"}, options.get()); };
  EXPECT_NE(code_of(runs), ORT_OK) << "the options still say so";
  check(ort().RunOptionsUnsetTerminate(options.get()));
  EXPECT_EQ(code_of(runs), ORT_OK);
  check(ort().RunOptionsSetTerminate(options.get()));
  EXPECT_NE(code_of(runs), ORT_OK) << "sizes that a run has had before";
}

TEST_F(FunctionTable, Bindings) {
  const Session session = open(model_of("g (float[N] x) => (float[N] y, float[N] z) { y = Neg(x) z = Abs(x) }"));
  const auto binding = make<IoBinding>(ort().CreateIoBinding, session.get());
  std::vector<float> x{-1, 2}, y(2);
  const Value ys = lend(y, {2}, kFloat);
  {
    const Value xs = lend(x, {2}, kFloat);
    check(ort().BindInput(binding.get(), "x", xs.get()));  // the binding has a handle of its own
  }
  check(ort().BindOutput(binding.get(), "y", ys.get()));
  check(ort().BindOutputToDevice(binding.get(), "z", cpu()));
  for (float first : {-1.0F, 4.0F}) {
    x[0] = first;
    check(ort().RunWithBinding(session.get(), nullptr, binding.get()));
    EXPECT_THAT(y, ElementsAre(-first, -2));
    OrtValue** values = nullptr;
    size_t count = 0;
    check(ort().GetBoundOutputValues(binding.get(), allocator(), &values, &count));
    ASSERT_EQ(count, 2U);
    EXPECT_THAT(elements<float>(values[1]), ElementsAre(std::abs(first), 2));
    for (size_t i = 0; i < count; ++i) ort().ReleaseValue(values[i]);
    allocator()->Free(allocator(), values);
  }
  char* names = nullptr;
  size_t *lengths = nullptr, count = 0;
  check(ort().GetBoundOutputNames(binding.get(), allocator(), &names, &lengths, &count));
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(std::string(names, lengths[0] + lengths[1]), "yz");
  allocator()->Free(allocator(), names);
  allocator()->Free(allocator(), lengths);
  EXPECT_NE(code_of([&] { check(ort().BindInput(binding.get(), "nothing", ys.get())); }), ORT_OK);
}

// The client and the binding each have a handle, and runs of changing sizes are planned for any size.
TEST_F(FunctionTable, BoundResultsOfAnySizeAreWrittenWhereTheyAre) {
  const Session session = open(model_of("g (float[N] x) => (float[N] y) { y = Neg(x) }"));
  const auto binding = make<IoBinding>(ort().CreateIoBinding, session.get());
  for (int64_t size = 1; size < 5; ++size) {
    std::vector<float> x(static_cast<size_t>(size), 2), y(x.size());
    const Value xs = lend(x, {size}, kFloat), ys = lend(y, {size}, kFloat);
    check(ort().BindInput(binding.get(), "x", xs.get()));
    check(ort().BindOutput(binding.get(), "y", ys.get()));
    check(ort().RunWithBinding(session.get(), nullptr, binding.get()));
    EXPECT_THAT(y, Each(-2));
  }
  // A run checks a binding's outputs against the model.
  const auto other = make<IoBinding>(ort().CreateIoBinding, session.get());
  check(ort().BindOutputToDevice(other.get(), "nothing", cpu()));
  EXPECT_NE(code_of([&] { check(ort().RunWithBinding(session.get(), nullptr, other.get())); }), ORT_OK);
}

TEST_F(FunctionTable, InitializersAreGiven) {
  const std::string model = model_of("g (float[2] x) => (float[2] y) <float[2] w = {5, 6}> { y = Mul(x, w) }");
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  std::vector<float> w{2, 3}, x{10, 100};
  const Value ws = lend(w, {2}, kFloat), xs = lend(x, {2}, kFloat);
  check(ort().AddInitializer(options.get(), "w", ws.get()));
  const Session session = open(model, options.get());
  EXPECT_THAT(elements<float>(run(session.get(), {"x"}, {xs.get()}, {"y"})[0].get()), ElementsAre(20, 300));
}

TEST_F(FunctionTable, SizesAreFixedByName) {
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  check(ort().AddFreeDimensionOverrideByName(options.get(), "N", 4));
  const Session session = open(model_of(kAdd), options.get());
  const auto type = make<TypeInfo>(ort().SessionGetInputTypeInfo, session.get(), 0);
  EXPECT_THAT(dims(ask<const OrtTensorTypeAndShapeInfo*>(ort().CastTypeInfoToTensorInfo, type.get())),
              ElementsAre(4, 3));
}

TEST_F(FunctionTable, EntriesOfOptionsAreKept) {
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  check(ort().AddSessionConfigEntry(options.get(), "session.intra_op.allow_spinning", "0"));
  const auto copy = make<SessionOptions>(ort().CloneSessionOptions, options.get());
  EXPECT_EQ(ask<int>(ort().HasSessionConfigEntry, copy.get(), "session.intra_op.allow_spinning"), 1);
  EXPECT_EQ(ask<int>(ort().HasSessionConfigEntry, copy.get(), "another"), 0);
  size_t size = 0;
  check(ort().GetSessionConfigEntry(copy.get(), "session.intra_op.allow_spinning", nullptr, &size));
  ASSERT_EQ(size, 2U);
  std::string value(size, ' ');
  check(ort().GetSessionConfigEntry(copy.get(), "session.intra_op.allow_spinning", value.data(), &size));
  EXPECT_STREQ(value.c_str(), "0");
}

TEST_F(FunctionTable, TheBodyOfALoopWithoutConditionEndsIt) {
  const std::string model = model_of(
      "g (int64 m, int64 e) => (int64[n] s) { s = Loop (m, \"\") <body = b (int64 i, bool c0) => (bool c1, int64 j) { "
      "c1 = Less(i, e) j = Identity(i) }> }");
  std::vector<int64_t> m{5}, e{2};
  const Value ms = lend(m, {}, kInt64), es = lend(e, {}, kInt64);
  const auto rows = [&](const OrtSessionOptions* options) {
    const Session session = open(model, options);
    return elements<int64_t>(run(session.get(), {"m", "e"}, {ms.get(), es.get()}, {"s"})[0].get());
  };
  EXPECT_THAT(rows(nullptr), ElementsAre(0, 1, 2));
  if (std::getenv("TREADLE_TEST_ONNXRUNTIME")) return;  // it has no such option
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  check(ort().AddSessionConfigEntry(options.get(), "treadle.loop_condition", "ignored"));
  EXPECT_THAT(rows(options.get()), ElementsAre(0, 1, 2, 3, 4));
}

TEST_F(FunctionTable, UnknownLevelsOfRewritingAreRefused) {
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  for (const GraphOptimizationLevel level : {ORT_DISABLE_ALL, ORT_ENABLE_EXTENDED, ORT_ENABLE_ALL}) {
    check(ort().SetSessionGraphOptimizationLevel(options.get(), level));
  }
  const auto none = static_cast<GraphOptimizationLevel>(-24);
  EXPECT_NE(code_of([&] { check(ort().SetSessionGraphOptimizationLevel(options.get(), none)); }), ORT_OK);
}

TEST_F(FunctionTable, AProfileIsWrittenWhenItsSessionEnds) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "profile_of_a_session";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  check(ort().EnableProfiling(options.get(), (folder / "trace").c_str()));
  open(model_of(kAdd), options.get());
  ASSERT_FALSE(std::filesystem::is_empty(folder));
  EXPECT_GT(std::filesystem::file_size(std::filesystem::directory_iterator(folder)->path()), 2U);
  std::filesystem::remove_all(folder);
}

TEST_F(FunctionTable, AProfileHasTheNodesOfEachRun) {
  const std::string prefix = (std::filesystem::path(testing::TempDir()) / "profile_with_nodes").string();
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  check(ort().EnableProfiling(options.get(), prefix.c_str()));
  const Session session = open(model_of(kAdd), options.get());
  std::vector<float> x{1, 2, 3}, b{10, 20, 30};
  const Value xs = lend(x, {1, 3}, kFloat), bs = lend(b, {3}, kFloat);
  for (int i = 0; i < 2; ++i) run(session.get(), {"x", "b"}, {xs.get(), bs.get()}, {"y"});
  char* name = nullptr;
  check(ort().SessionEndProfiling(session.get(), allocator(), &name));
  const std::string path = take(name);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const auto& [event, count] : {std::pair{"_kernel_time\"", 2},
                                     {"\"model_run\"", 2},
                                     {"\"op_name\"", 2},
                                     {"\"SequentialExecutor::Execute\"", 2},
                                     {"\"model_loading_array\"", 1},
                                     {"\"session_initialization\"", 1},
                                     {"\"input_type_shape\"", 2}}) {
    int found = 0;
    for (size_t at = text.find(event); at != std::string::npos; at = text.find(event, at + 1)) ++found;
    EXPECT_EQ(found, count) << event;
  }
  std::filesystem::remove(path);
}

TEST_F(FunctionTable, RunsInTheBackground) {
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  check(ort().SetIntraOpNumThreads(options.get(), 2));  // onnxruntime needs threads for it
  const Session session = open(model_of(kAdd), options.get());
  std::vector<float> x{1, 2, 3}, b{10, 20, 30};
  const Value xs = lend(x, {1, 3}, kFloat), bs = lend(b, {3}, kFloat);
  const char* const names[] = {"x", "b"};
  const OrtValue* const inputs[] = {xs.get(), bs.get()};
  const char* const output = "y";
  OrtValue* outputs[1] = {};
  struct Ended {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
    OrtStatus* status = nullptr;
  } told;
  const auto callback = [](void* context, OrtValue**, size_t, OrtStatus* status) {
    auto& told = *static_cast<Ended*>(context);
    const std::lock_guard lock(told.mutex);
    told.ended = true;
    told.status = status;
    told.changed.notify_all();
  };
  check(ort().RunAsync(session.get(), nullptr, names, inputs, 2, &output, 1, outputs, callback, &told));
  std::unique_lock lock(told.mutex);
  told.changed.wait(lock, [&] { return told.ended; });
  check(told.status);
  const Value result(outputs[0]);
  EXPECT_THAT(elements<float>(result.get()), ElementsAre(11, 22, 33));
}

TEST_F(FunctionTable, ProvidersAndDevices) {
  char** names = nullptr;
  int count = 0;
  check(ort().GetAvailableProviders(&names, &count));
  std::vector<std::string> known(names, names + count);
  check(ort().ReleaseAvailableProviders(names, count));
  EXPECT_THAT(known, testing::Contains("CPUExecutionProvider"));
  const auto options = make<SessionOptions>(ort().CreateSessionOptions);
  EXPECT_NE(code_of([&] {
              check(ort().SessionOptionsAppendExecutionProvider(options.get(), "Imaginary", nullptr, nullptr, 0));
            }),
            ORT_OK);
  const OrtEpDevice* const* devices = nullptr;
  size_t device_count = 0;
  check(ort().GetEpDevices(environment().get(), &devices, &device_count));
  ASSERT_GE(device_count, 1U);
  EXPECT_STREQ(ort().EpDevice_EpName(devices[0]), "CPUExecutionProvider");
}

TEST_F(FunctionTable, EnvironmentsAreOne) {
  const Env first = make<Env>(ort().CreateEnv, ORT_LOGGING_LEVEL_WARNING, "a");
  const Env second = make<Env>(ort().CreateEnv, ORT_LOGGING_LEVEL_WARNING, "b");
  EXPECT_EQ(first.get(), second.get());
}

TEST_F(FunctionTable, ElementsHaveAddresses) {
  std::vector<float> x{1, 2, 3, 4, 5, 6};
  const Value xs = lend(x, {2, 3}, kFloat);
  const int64_t position[] = {1, 2};
  EXPECT_EQ(ask<void*>(ort().TensorAt, xs.get(), position, 2), &x[5]);
  const int64_t outside[] = {2, 0};
  EXPECT_NE(code_of([&] { ask<void*>(ort().TensorAt, xs.get(), outside, 2); }), ORT_OK);
}

TEST_F(FunctionTable, MemoryOfTheCallerMustSuffice) {
  std::vector<float> x(5);
  EXPECT_EQ(code_of([&] { lend(x, {2, 3}, kFloat); }), ORT_INVALID_ARGUMENT);
  EXPECT_EQ(code_of([&] { lend(x, {-1, 3}, kFloat); }), ORT_INVALID_ARGUMENT);
}

// ---- Operators of a library's own

// y = alpha x + shift (shift may be left out), with the name of the node's mode as a text.
struct ScaleKernel {
  const OrtApi* api;
  float alpha;
  std::string mode;
  std::vector<int64_t> counts;
};

OrtStatus* make_scale(const OrtCustomOp*, const OrtApi* api, const OrtKernelInfo* info, void** out) {
  auto kernel = std::make_unique<ScaleKernel>(ScaleKernel{api, 2, "none", {}});
  if (OrtStatus* missing = api->KernelInfoGetAttribute_float(info, "alpha", &kernel->alpha))
    api->ReleaseStatus(missing);
  size_t size = 0;
  if (OrtStatus* missing = api->KernelInfoGetAttribute_string(info, "mode", nullptr, &size)) {
    api->ReleaseStatus(missing);
  } else {
    kernel->mode.resize(size);
    if (OrtStatus* failed = api->KernelInfoGetAttribute_string(info, "mode", kernel->mode.data(), &size)) return failed;
    kernel->mode.resize(size - 1);
  }
  size = 0;
  if (OrtStatus* missing = api->KernelInfoGetAttributeArray_int64(info, "counts", nullptr, &size)) {
    api->ReleaseStatus(missing);
  } else {
    kernel->counts.resize(size);
    if (OrtStatus* failed = api->KernelInfoGetAttributeArray_int64(info, "counts", kernel->counts.data(), &size))
      return failed;
  }
  if (kernel->mode == "broken") return api->CreateStatus(ORT_INVALID_ARGUMENT, "mode is not broken");
  *out = kernel.release();
  return nullptr;
}

std::function<void()> on_scale;  // called by each call of the operator

OrtStatus* run_scale(void* state, OrtKernelContext* context) {
  if (on_scale) on_scale();
  const auto& kernel = *static_cast<const ScaleKernel*>(state);
  const OrtApi& api = *kernel.api;
  const auto must = [](OrtStatus* status) { check(status); };
  const auto* x = ask<const OrtValue*>(api.KernelContext_GetInput, context, size_t{0});
  const size_t inputs = ask<size_t>(api.KernelContext_GetInputCount, context);
  const auto* shift = inputs > 1 ? ask<const OrtValue*>(api.KernelContext_GetInput, context, size_t{1}) : nullptr;
  const auto info = make<TensorTypeAndShapeInfo>(api.GetTensorTypeAndShape, x);
  const std::vector<int64_t> sizes = dims(info.get());
  OrtValue* y = nullptr;
  must(api.KernelContext_GetOutput(context, 0, sizes.data(), sizes.size(), &y));
  const std::vector<float> from = elements<float>(x);
  auto* to = static_cast<float*>(ask<void*>(api.GetTensorMutableData, y));
  const float add = shift ? elements<float>(shift)[0] : 0;
  for (size_t i = 0; i < from.size(); ++i) to[i] = kernel.alpha * from[i] + add;
  OrtValue* text = nullptr;
  const int64_t one = static_cast<int64_t>(kernel.counts.size());
  must(api.KernelContext_GetOutput(context, 1, &one, 1, &text));
  const std::vector<const char*> words(static_cast<size_t>(one), kernel.mode.c_str());
  must(api.FillStringTensor(text, words.data(), words.size()));
  return from.empty() || from[0] < 1000 ? nullptr : api.CreateStatus(ORT_FAIL, "the numbers are too large");
}

OrtStatus* infer_scale(const OrtCustomOp*, OrtShapeInferContext* context) {
  OrtTensorTypeAndShapeInfo* x = nullptr;
  if (OrtStatus* failed = ort().ShapeInferContext_GetInputTypeShape(context, 0, &x)) return failed;
  return ort().ShapeInferContext_SetOutputTypeShape(context, 0, x);
}

OrtCustomOp scale_operator() {
  OrtCustomOp op = {};
  op.version = 23;
  op.CreateKernel = nullptr;
  op.GetName = [](const OrtCustomOp*) { return "Scale"; };
  op.GetExecutionProviderType = [](const OrtCustomOp*) -> const char* { return nullptr; };
  op.GetInputType = [](const OrtCustomOp*, size_t) { return kFloat; };
  op.GetInputTypeCount = [](const OrtCustomOp*) -> size_t { return 2; };
  op.GetOutputType = [](const OrtCustomOp*, size_t i) { return i == 0 ? kFloat : kString; };
  op.GetOutputTypeCount = [](const OrtCustomOp*) -> size_t { return 2; };
  op.KernelCompute = nullptr;
  op.KernelDestroy = [](void* kernel) { delete static_cast<ScaleKernel*>(kernel); };
  op.GetInputCharacteristic = [](const OrtCustomOp*, size_t i) {
    return i == 0 ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
  };
  op.GetOutputCharacteristic = [](const OrtCustomOp*, size_t) { return INPUT_OUTPUT_REQUIRED; };
  op.GetInputMemoryType = [](const OrtCustomOp*, size_t) { return OrtMemTypeDefault; };
  const auto none = [](const OrtCustomOp*) { return 0; };
  op.GetVariadicInputMinArity = op.GetVariadicInputHomogeneity = op.GetVariadicOutputMinArity =
      op.GetVariadicOutputHomogeneity = none;
  op.CreateKernelV2 = make_scale;
  op.KernelComputeV2 = run_scale;
  op.InferOutputShapeFn = infer_scale;
  op.GetStartVersion = [](const OrtCustomOp*) { return 1; };
  op.GetEndVersion = [](const OrtCustomOp*) { return 100; };
  return op;
}

class CustomOperators : public FunctionTable {
 protected:
  void SetUp() override {
    FunctionTable::SetUp();
    if (IsSkipped()) return;
    options_ = make<SessionOptions>(ort().CreateSessionOptions);
    check(ort().CreateCustomOpDomain("mine", &domain_));
    check(ort().CustomOpDomain_Add(domain_, &op_));
    check(ort().AddCustomOpDomain(options_.get(), domain_));
  }
  void TearDown() override {
    if (domain_) ort().ReleaseCustomOpDomain(domain_);
  }
  static std::string model(const std::string& graph) {
    return bytes_of("<ir_version: 8, opset_import: [\"\" : 17, \"mine\" : 1]>\n" + graph);
  }

  const OrtCustomOp op_ = scale_operator();
  OrtCustomOpDomain* domain_ = nullptr;
  SessionOptions options_;
};

TEST_F(CustomOperators, Run) {
  const Session session = open(model(R"(g (float[N] x, float s) => (float[N] y, string[C] t, float[N] z, string[D] u) {
    y, t = mine.Scale <alpha = 3.0, mode = "loud", counts = [7, 8]> (x, s)
    z, u = mine.Scale (y)
  })"),
                               options_.get());
  std::vector<float> x = {1, -2}, s = {0.5};
  const Value lent = lend(x, {2}, kFloat), shift = lend(s, {}, kFloat);
  const auto results = run(session.get(), {"x", "s"}, {lent.get(), shift.get()}, {"y", "t", "z", "u"});
  EXPECT_THAT(elements<float>(results[0].get()), ElementsAre(3.5, -5.5));
  EXPECT_THAT(texts(results[1].get(), 2), ElementsAre("loud", "loud"));
  EXPECT_THAT(elements<float>(results[2].get()), ElementsAre(7, -11));
  std::string message;
  x[0] = 2000;
  EXPECT_NE(code_of([&] { run(session.get(), {"x", "s"}, {lent.get(), shift.get()}, {"y"}); }, &message), ORT_OK);
  EXPECT_THAT(message, HasSubstr("the numbers are too large"));
}

TEST_F(CustomOperators, RunInALoop) {
  const Session session = open(model(R"(g (int64 n, float[2] x) => (float[2] y) {
    yes = Constant <value = bool {1}> ()
    y = Loop <body = b (int64 i, bool go, float[2] h) => (bool on, float[2] k) {
      on = Identity(go)
      k, t = mine.Scale <counts = [1]> (h)
    }> (n, yes, x)
  })"),
                               options_.get());
  std::vector<float> x = {1, -2};
  std::vector<int64_t> n = {5};
  const Value lent = lend(x, {2}, kFloat), count = lend(n, {}, static_cast<ONNXTensorElementDataType>(7));
  const auto results = run(session.get(), {"n", "x"}, {count.get(), lent.get()}, {"y"});
  EXPECT_THAT(elements<float>(results[0].get()), ElementsAre(32, -64));
}

TEST_F(CustomOperators, FailWhereTheyAreMade) {
  std::string message;
  const std::string broken =
      model("g (float[2] x) => (float[2] y, string[1] t) { y, t = mine.Scale <mode = \"broken\"> (x) }");
  EXPECT_NE(code_of([&] { open(broken, options_.get()); }, &message), ORT_OK);
  EXPECT_THAT(message, HasSubstr("mode is not broken"));
  EXPECT_NE(code_of([&] { open(broken); }), ORT_OK) << "other options do not have the operator";
}

TEST_F(CustomOperators, EndWithTheRunThatIsTerminated) {
  const Session session = open(model(R"(g (float[2] x) => (float[2] e) {
    a, p = mine.Scale <counts = [1]> (x)
    b, q = mine.Scale <counts = [1]> (a)
    c, r = mine.Scale <counts = [1]> (b)
    d, s = mine.Scale <counts = [1]> (c)
    e, t = mine.Scale <counts = [1]> (d)
  })"),
                               options_.get());
  const RunOptions options = make<RunOptions>(ort().CreateRunOptions);
  int calls = 0;
  on_scale = [&] {
    if (++calls == 3) check(ort().RunOptionsSetTerminate(options.get()));
  };
  std::vector<float> x = {1, -2};
  const Value lent = lend(x, {2}, kFloat);
  EXPECT_NE(code_of([&] { run(session.get(), {"x"}, {lent.get()}, {"e"}, options.get()); }), ORT_OK);
  on_scale = nullptr;
  EXPECT_EQ(calls, 3);
}

}  // namespace
