/* A program in C: it loads models, runs them and prints what came out. FOLDER has loop.onnx, texts.onnx and
 * sequences.onnx (tests/dropin/test_native_clients.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onnxruntime.h"

static const OrtApi* ort;
static OrtEnv* environment;
static OrtMemoryInfo* memory;
static OrtAllocator* allocator;
static const char* folder;

static void check(OrtStatus* status) {
  if (!status) return;
  fprintf(stderr, "error %d: %s\n", ort->GetErrorCode(status), ort->GetErrorMessage(status));
  exit(1);
}

static OrtSession* open_model(const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  check(ort->CreateSessionOptions(&options));
  check(ort->SetIntraOpNumThreads(options, 1));
  check(ort->CreateSession(environment, path, options, &session));
  ort->ReleaseSessionOptions(options);
  return session;
}

static OrtValue* lend(void* data, size_t bytes, const int64_t* dims, size_t rank, int type) {
  OrtValue* value = NULL;
  check(ort->CreateTensorWithDataAsOrtValue(memory, data, bytes, dims, rank, type, &value));
  return value;
}

static void print_floats(const char* what, OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  size_t rank = 0, count = 0;
  int64_t dims[8];
  float* data = NULL;
  check(ort->GetTensorTypeAndShape(value, &info));
  check(ort->GetDimensionsCount(info, &rank));
  check(ort->GetDimensions(info, dims, rank));
  check(ort->GetTensorShapeElementCount(info, &count));
  ort->ReleaseTensorTypeAndShapeInfo(info);
  check(ort->GetTensorMutableData(value, (void**)&data));
  printf("%s [", what);
  for (size_t i = 0; i < rank; ++i) printf("%s%lld", i ? "," : "", (long long)dims[i]);
  printf("]");
  for (size_t i = 0; i < count; ++i) printf(" %.4f", data[i]);
  printf("\n");
}

static void describe(OrtSession* session) {
  size_t count = 0;
  check(ort->SessionGetInputCount(session, &count));
  for (size_t i = 0; i < count; ++i) {
    char* name = NULL;
    OrtTypeInfo* type = NULL;
    const OrtTensorTypeAndShapeInfo* tensor = NULL;
    ONNXTensorElementDataType element = 0;
    size_t rank = 0;
    const char* symbols[8];
    check(ort->SessionGetInputName(session, i, allocator, &name));
    check(ort->SessionGetInputTypeInfo(session, i, &type));
    check(ort->CastTypeInfoToTensorInfo(type, &tensor));
    check(ort->GetTensorElementType(tensor, &element));
    check(ort->GetDimensionsCount(tensor, &rank));
    check(ort->GetSymbolicDimensions(tensor, symbols, rank));
    printf("input %s %d", name, element);
    for (size_t k = 0; k < rank; ++k) printf(" '%s'", symbols[k]);
    printf("\n");
    ort->ReleaseTypeInfo(type);
    allocator->Free(allocator, name);
  }
}

static void run_loop(void) {
  OrtSession* session = open_model("loop.onnx");
  describe(session);
  float x[6] = {1, -1, 0.5F, 0.25F, 2, -3}, y[6] = {0};
  int64_t iterations = 4, dims[2] = {2, 3};
  OrtValue* inputs[2] = {lend(&iterations, sizeof iterations, NULL, 0, INT64), lend(x, sizeof x, dims, 2, FLOAT)};
  const char* names[2] = {"n", "x"};
  const char* output_names[2] = {"y", "sums"};
  OrtValue* outputs[2] = {lend(y, sizeof y, dims, 2, FLOAT), NULL}; /* one in place, one that the run makes */
  for (iterations = 0; iterations < 5; iterations += 2) {
    check(ort->Run(session, NULL, names, (const OrtValue* const*)inputs, 2, output_names, 2, outputs));
    printf("%lld iterations, first %.4f\n", (long long)iterations, y[0]);
    print_floats("y", outputs[0]);
    print_floats("sums", outputs[1]);
    ort->ReleaseValue(outputs[1]);
    outputs[1] = NULL;
  }
  OrtIoBinding* binding = NULL;
  OrtValue** bound = NULL;
  size_t count = 0;
  check(ort->CreateIoBinding(session, &binding));
  for (int i = 0; i < 2; ++i) check(ort->BindInput(binding, names[i], inputs[i]));
  check(ort->BindOutputToDevice(binding, "sums", memory));
  check(ort->BindOutput(binding, "y", outputs[0]));
  iterations = 3;
  for (int i = 0; i < 2; ++i) check(ort->RunWithBinding(session, NULL, binding));
  check(ort->GetBoundOutputValues(binding, allocator, &bound, &count));
  for (size_t i = 0; i < count; ++i) print_floats("bound", bound[i]), ort->ReleaseValue(bound[i]);
  allocator->Free(allocator, bound);
  ort->ReleaseIoBinding(binding);
  for (int i = 0; i < 2; ++i) ort->ReleaseValue(inputs[i]);
  ort->ReleaseValue(outputs[0]);
  ort->ReleaseSession(session);
}

static void run_texts(void) {
  OrtSession* session = open_model("texts.onnx");
  const char* texts[3] = {"a loop", "", "\xC3\xBC"};
  const int64_t dims[1] = {3};
  OrtValue *value = NULL, *result = NULL;
  check(ort->CreateTensorAsOrtValue(allocator, dims, 1, STRING, &value));
  check(ort->FillStringTensor(value, texts, 3));
  const char *name = "words", *output = "joined";
  check(ort->Run(session, NULL, &name, (const OrtValue* const*)&value, 1, &output, 1, &result));
  size_t size = 0, offsets[6];
  check(ort->GetStringTensorDataLength(result, &size));
  char* all = malloc(size + 1);
  check(ort->GetStringTensorContent(result, all, size, offsets, 6));
  for (int i = 0; i < 6; ++i) {
    const size_t end = i < 5 ? offsets[i + 1] : size;
    printf("text '%.*s'\n", (int)(end - offsets[i]), all + offsets[i]);
  }
  free(all);
  ort->ReleaseValue(value);
  ort->ReleaseValue(result);
  ort->ReleaseSession(session);
}

static void run_sequences(void) {
  OrtSession* session = open_model("sequences.onnx");
  float a[2] = {1, 2}, b[3] = {3, 4, 5};
  const int64_t two = 2, three = 3;
  OrtValue* parts[2] = {lend(a, sizeof a, &two, 1, FLOAT), lend(b, sizeof b, &three, 1, FLOAT)};
  OrtValue *sequence = NULL, *result = NULL;
  check(ort->CreateValue((const OrtValue* const*)parts, 2, 2 /* a sequence */, &sequence));
  const char *name = "s", *output = "t";
  check(ort->Run(session, NULL, &name, (const OrtValue* const*)&sequence, 1, &output, 1, &result));
  size_t count = 0;
  check(ort->GetValueCount(result, &count));
  for (size_t i = 0; i < count; ++i) {
    OrtValue* part = NULL;
    check(ort->GetValue(result, (int)i, allocator, &part));
    print_floats("part", part);
    ort->ReleaseValue(part);
  }
  for (int i = 0; i < 2; ++i) ort->ReleaseValue(parts[i]);
  ort->ReleaseValue(sequence);
  ort->ReleaseValue(result);
  ort->ReleaseSession(session);
}

static void say(const char* what, OrtStatus* status) {
  if (!status) {
    printf("%s: no error\n", what);
    return;
  }
  printf("%s: code %d, %s\n", what, ort->GetErrorCode(status), *ort->GetErrorMessage(status) ? "and says why" : "mute");
  ort->ReleaseStatus(status);
}

static void fail(void) {
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  check(ort->CreateSessionOptions(&options));
  say("no file", ort->CreateSession(environment, "/there/is/no.onnx", options, &session));
  say("no model", ort->CreateSessionFromArray(environment, "what", 4, options, &session));
  ort->ReleaseSessionOptions(options);
  session = open_model("loop.onnx");
  float x[2] = {1, 2};
  const int64_t two = 2;
  OrtValue *value = lend(x, sizeof x, &two, 1, FLOAT), *result = NULL;
  const char *name = "x", *wrong = "nothing", *output = "y";
  say("a missing input", ort->Run(session, NULL, &name, (const OrtValue* const*)&value, 1, &output, 1, &result));
  say("a wrong input", ort->Run(session, NULL, &wrong, (const OrtValue* const*)&value, 1, &output, 1, &result));
  ort->ReleaseValue(value);
  ort->ReleaseSession(session);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  folder = arguments[1];
  ort = OrtGetApiBase()->GetApi(17);
  check(ort->CreateEnv(4 /* no more than fatal errors */, "client", &environment));
  check(ort->CreateCpuMemoryInfo(0, 0, &memory));
  check(ort->GetAllocatorWithDefaultOptions(&allocator));
  run_loop();
  run_texts();
  run_sequences();
  fail();
  ort->ReleaseMemoryInfo(memory);
  ort->ReleaseEnv(environment);
  return 0;
}
