// Layers of RTNeural, a checkout of which bench/peers.py compiles this file with: known sizes (ModelT) and sizes of the
// run (Model), with one interface. Weights come as RTNeural's layers take them.
#include <RTNeural/RTNeural.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace {

using Rows = std::vector<std::vector<float>>;

Rows rows_of(const float* data, int count, int width) {
  Rows rows;
  for (int i = 0; i < count; ++i) rows.emplace_back(data + i * width, data + (i + 1) * width);
  return rows;
}

// `weights`: three arrays, of which a layer without recurrence takes the first and the last.
template <class Layer>
void set_lstm(Layer& layer, int units, const float* const* weights) {
  layer.setWVals(rows_of(weights[0], units, 4 * units));
  layer.setUVals(rows_of(weights[1], units, 4 * units));
  layer.setBVals(std::vector<float>(weights[2], weights[2] + 4 * units));
}

template <class Layer>
void set_gru(Layer& layer, int units, const float* const* weights) {
  layer.setWVals(rows_of(weights[0], units, 3 * units));
  layer.setUVals(rows_of(weights[1], units, 3 * units));
  layer.setBVals(rows_of(weights[2], 2, 3 * units));
}

template <class Layer>
void set_dense(Layer& layer, int units, const float* const* weights) {
  layer.setWeights(rows_of(weights[0], units, units));
  layer.setBias(weights[2]);
}

constexpr int kKernel = 3;

template <class Layer>
void set_conv(Layer& layer, int units, const float* const* weights) {
  std::vector<Rows> kernels;
  for (int i = 0; i < units; ++i) kernels.push_back(rows_of(weights[0] + i * units * kKernel, units, kKernel));
  layer.setWeights(kernels);
  layer.setBias(std::vector<float>(weights[2], weights[2] + units));
}

struct Net {
  virtual ~Net() = default;
  virtual void process(const float* in, float* out, int64_t frames) = 0;
};

template <int units, class Layer>
struct Static : Net {
  RTNeural::ModelT<float, units, units, Layer> model;
  alignas(64) float frame[units];
  void process(const float* in, float* out, int64_t frames) override {
    for (int64_t i = 0; i < frames; ++i, in += units, out += units) {
      std::copy_n(in, units, frame);  // which vectors want aligned
      model.forward(frame);
      std::copy_n(model.getOutputs(), units, out);
    }
  }
};

struct Dynamic : Net {
  int units;
  RTNeural::Model<float> model;
  alignas(64) float frame[128] = {};
  explicit Dynamic(int units) : units(units), model(units) {}
  void process(const float* in, float* out, int64_t frames) override {
    for (int64_t i = 0; i < frames; ++i, in += units, out += units) {
      std::copy_n(in, units, frame);
      model.forward(frame);
      std::copy_n(model.getOutputs(), units, out);
    }
  }
};

template <class Layer, int units, class Set>
std::unique_ptr<Net> fixed(Set&& set) {
  auto net = std::make_unique<Static<units, Layer>>();
  set(net->model.template get<0>());
  net->model.reset();
  return net;
}

template <int units>
std::unique_ptr<Net> make_static(std::string_view kind, const float* const* weights) {
  if (kind == "lstm")
    return fixed<RTNeural::LSTMLayerT<float, units, units>, units>([&](auto& l) { set_lstm(l, units, weights); });
  if (kind == "gru")
    return fixed<RTNeural::GRULayerT<float, units, units>, units>([&](auto& l) { set_gru(l, units, weights); });
  if (kind == "dense")
    return fixed<RTNeural::DenseT<float, units, units>, units>([&](auto& l) { set_dense(l, units, weights); });
  if (kind == "conv1d")
    return fixed<RTNeural::Conv1DT<float, units, units, kKernel, 1>, units>(
        [&](auto& l) { set_conv(l, units, weights); });
  return nullptr;
}

template <class Layer, class Set>
std::unique_ptr<Net> open(int units, Layer* layer, Set&& set) {
  set(*layer);
  auto net = std::make_unique<Dynamic>(units);
  net->model.addLayer(layer);  // which the model owns from now on
  net->model.reset();
  return net;
}

std::unique_ptr<Net> make_dynamic(std::string_view kind, int units, const float* const* weights) {
  if (kind == "lstm")
    return open(units, new RTNeural::LSTMLayer<float>(units, units), [&](auto& l) { set_lstm(l, units, weights); });
  if (kind == "gru")
    return open(units, new RTNeural::GRULayer<float>(units, units), [&](auto& l) { set_gru(l, units, weights); });
  if (kind == "dense")
    return open(units, new RTNeural::Dense<float>(units, units), [&](auto& l) { set_dense(l, units, weights); });
  if (kind == "conv1d")
    return open(units, new RTNeural::Conv1D<float>(units, units, kKernel, 1),
                [&](auto& l) { set_conv(l, units, weights); });
  return nullptr;
}

}  // namespace

extern "C" {

// Null: there is no such layer of this size.
__attribute__((visibility("default"))) void* peer_open(const char* kind, int64_t units, int64_t is_static,
                                                       const float* const* weights) {
  if (!is_static) return make_dynamic(kind, static_cast<int>(units), weights).release();
  switch (units) {
    case 8:
      return make_static<8>(kind, weights).release();
    case 16:
      return make_static<16>(kind, weights).release();
    case 32:
      return make_static<32>(kind, weights).release();
    case 64:
      return make_static<64>(kind, weights).release();
    case 128:
      return make_static<128>(kind, weights).release();
    default:
      return nullptr;
  }
}

__attribute__((visibility("default"))) void peer_process(void* net, int64_t calls, const float* in, float* out,
                                                         int64_t frames) {
  for (int64_t i = 0; i < calls; ++i) static_cast<Net*>(net)->process(in, out, frames);
}

__attribute__((visibility("default"))) void peer_close(void* net) {
  delete static_cast<Net*>(net);
}
}
