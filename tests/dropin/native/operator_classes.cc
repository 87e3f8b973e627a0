// A library of operators by the classes of onnxruntime's C++ header: a kernel with attributes and inference, one that
// throws, and a function without a class.

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>
#include <onnxruntime_lite_custom_op.h>

#include <memory>
#include <stdexcept>
#include <vector>

namespace {

struct Power {
  Power(const OrtApi&, const OrtKernelInfo* info) {
    const Ort::ConstKernelInfo node(info);
    exponent = node.GetAttribute<int64_t>("exponent");
    if (exponent < 0) throw std::invalid_argument("the exponent is negative");
  }
  void Compute(OrtKernelContext* context) {
    const Ort::KernelContext call(context);
    const auto x = call.GetInput(0);
    const auto shape = x.GetTensorTypeAndShapeInfo().GetShape();
    float* const y = call.GetOutput(0, shape.data(), shape.size()).GetTensorMutableData<float>();
    const size_t count = x.GetTensorTypeAndShapeInfo().GetElementCount();
    for (size_t i = 0; i < count; ++i) {
      if (x.GetTensorData<float>()[i] > 1e6F) throw std::runtime_error("a number is beyond a million");
      y[i] = 1;
      for (int64_t e = 0; e < exponent; ++e) y[i] *= x.GetTensorData<float>()[i];
    }
  }
  int64_t exponent = 1;
};

struct PowerOperator : Ort::CustomOpBase<PowerOperator, Power> {
  void* CreateKernel(const OrtApi& api, const OrtKernelInfo* info) const { return new Power(api, info); }
  const char* GetName() const { return "Power"; }
  size_t GetInputTypeCount() const { return 1; }
  size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(size_t) const { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
  ONNXTensorElementDataType GetOutputType(size_t) const { return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT; }
  static Ort::Status InferOutputShape(Ort::ShapeInferContext& context) {
    return context.SetOutputShape(0, context.GetInputShape(0));
  }
};

void halve(const Ort::Custom::Tensor<float>& x, Ort::Custom::Tensor<float>& y) {
  float* const to = y.Allocate(x.Shape());
  for (int64_t i = 0; i < x.NumberOfElement(); ++i) to[i] = x.Data()[i] / 2;
}

}  // namespace

extern "C" OrtStatus* RegisterCustomOps(OrtSessionOptions* options, const OrtApiBase* base) {
  Ort::InitApi(base->GetApi(ORT_API_VERSION));
  static const PowerOperator power;
  static const std::unique_ptr<Ort::Custom::OrtLiteCustomOp> half{
      Ort::Custom::CreateLiteCustomOp("Halve", "CPUExecutionProvider", halve)};
  static Ort::CustomOpDomain domain = [] {
    Ort::CustomOpDomain made("classes");
    made.Add(&power);
    made.Add(half.get());
    return made;
  }();
  try {
    Ort::UnownedSessionOptions(options).Add(domain);
  } catch (const std::exception& error) {
    return Ort::Status(error).release();
  }
  return nullptr;
}
