// The program client.c in C++, with onnxruntime's own header.
#include <onnxruntime_cxx_api.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

std::string folder;
const Ort::Env& environment() {
  static const Ort::Env made(ORT_LOGGING_LEVEL_FATAL, "client");
  return made;
}
const Ort::MemoryInfo& memory() {
  static const Ort::MemoryInfo made = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  return made;
}

Ort::Session open(const char* name) {
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1);
  return Ort::Session(environment(), (folder + "/" + name).c_str(), options);
}

template <class T>
Ort::Value lend(std::vector<T>& data, const std::vector<int64_t>& dims) {
  return Ort::Value::CreateTensor<T>(memory(), data.data(), data.size(), dims.data(), dims.size());
}

void print_floats(const char* what, const Ort::Value& value) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  std::printf("%s [", what);
  const char* separator = "";
  for (const int64_t size : info.GetShape()) std::printf("%s%lld", std::exchange(separator, ","), (long long)size);
  std::printf("]");
  const float* const data = value.GetTensorData<float>();
  for (size_t i = 0; i < info.GetElementCount(); ++i) std::printf(" %.4f", data[i]);
  std::printf("\n");
}

void describe(const Ort::Session& session) {
  Ort::AllocatorWithDefaultOptions allocator;
  for (size_t i = 0; i < session.GetInputCount(); ++i) {
    const auto type = session.GetInputTypeInfo(i);
    const auto tensor = type.GetTensorTypeAndShapeInfo();
    std::printf("input %s %d", session.GetInputNameAllocated(i, allocator).get(), tensor.GetElementType());
    for (const char* symbol : tensor.GetSymbolicDimensions()) std::printf(" '%s'", symbol);
    std::printf("\n");
  }
}

void run_loop() {
  Ort::Session session = open("loop.onnx");
  describe(session);
  std::vector<float> x{1, -1, 0.5F, 0.25F, 2, -3}, y(6);
  std::vector<int64_t> iterations{4};
  Ort::Value inputs[] = {lend(iterations, {}), lend(x, {2, 3})};
  const char* const names[] = {"n", "x"};
  const char* const output_names[] = {"y", "sums"};
  Ort::Value given = lend(y, {2, 3});
  for (iterations[0] = 0; iterations[0] < 5; iterations[0] += 2) {
    Ort::Value outputs[] = {std::move(given), Ort::Value(nullptr)};
    session.Run(Ort::RunOptions(nullptr), names, inputs, 2, output_names, outputs, 2);
    std::printf("%lld iterations, first %.4f\n", (long long)iterations[0], y[0]);
    print_floats("y", outputs[0]);
    print_floats("sums", outputs[1]);
    given = std::move(outputs[0]);
  }
  Ort::IoBinding binding(session);
  for (int i = 0; i < 2; ++i) binding.BindInput(names[i], inputs[i]);
  binding.BindOutput("sums", memory());
  binding.BindOutput("y", given);
  iterations[0] = 3;
  for (int i = 0; i < 2; ++i) session.Run(Ort::RunOptions(), binding);
  for (const Ort::Value& value : binding.GetOutputValues()) print_floats("bound", value);
}

void run_texts() {
  Ort::Session session = open("texts.onnx");
  Ort::AllocatorWithDefaultOptions allocator;
  const int64_t three = 3;
  Ort::Value value = Ort::Value::CreateTensor(allocator, &three, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const char* const texts[] = {"a loop", "", "\xC3\xBC"};
  value.FillStringTensor(texts, 3);
  const char *name = "words", *output = "joined";
  const auto results = session.Run(Ort::RunOptions(), &name, &value, 1, &output, 1);
  const size_t count = results[0].GetTensorTypeAndShapeInfo().GetElementCount();
  for (size_t i = 0; i < count; ++i) std::printf("text '%s'\n", results[0].GetStringTensorElement(i).c_str());
}

void run_sequences() {
  Ort::Session session = open("sequences.onnx");
  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<float> a{1, 2}, b{3, 4, 5};
  std::vector<Ort::Value> parts;
  parts.push_back(lend(a, {2}));
  parts.push_back(lend(b, {3}));
  const Ort::Value sequence = Ort::Value::CreateSequence(parts);
  const char *name = "s", *output = "t";
  const auto results = session.Run(Ort::RunOptions(), &name, &sequence, 1, &output, 1);
  for (size_t i = 0; i < results[0].GetCount(); ++i) {
    print_floats("part", results[0].GetValue(static_cast<int>(i), allocator));
  }
}

template <class Fn>
void say(const char* what, Fn&& fn) {
  try {
    fn();
    std::printf("%s: no error\n", what);
  } catch (const Ort::Exception& error) {
    std::printf("%s: code %d, %s\n", what, error.GetOrtErrorCode(), *error.what() ? "and says why" : "mute");
  }
}

void fail() {
  const Ort::SessionOptions options;
  say("no file", [&] { Ort::Session(environment(), "/there/is/no.onnx", options); });
  say("no model", [&] { Ort::Session(environment(), "what", 4, options); });
  Ort::Session session = open("loop.onnx");
  std::vector<float> x{1, 2};
  const Ort::Value value = lend(x, {2});
  const char *name = "x", *wrong = "nothing", *output = "y";
  say("a missing input", [&] { session.Run(Ort::RunOptions(), &name, &value, 1, &output, 1); });
  say("a wrong input", [&] { session.Run(Ort::RunOptions(), &wrong, &value, 1, &output, 1); });
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  folder = arguments[1];
  run_loop();
  run_texts();
  run_sequences();
  fail();
}
