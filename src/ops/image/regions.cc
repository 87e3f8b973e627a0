// Regions of images: RoiAlign and NonMaxSuppression.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/counted.h"
#include "kernels/convert.h"
#include "kernels/sort.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"

namespace treadle {
namespace {

// --- RoiAlign

Status infer_roi_align(InferContext& c) {
  const Shape *x = c.shape(0), *rois = c.shape(1), *batch = c.shape(2);
  const std::string_view mode = c.attributes().get_string("mode", "avg");
  if (mode != "avg" && mode != "max") return error(Code::kInvalidModel, "mode is {}, expected avg or max", mode);
  if ((x && x->size() != 4) || (rois && rois->size() != 2) || (batch && batch->size() != 1)) {
    const auto text = [](const Shape* shape) { return shape ? to_string(*shape) : "?"; };
    return error(Code::kInvalidArgument,
                 "X, rois and batch_indices have shapes {}, {} and {}, expected ranks 4, 2 and 1", text(x), text(rois),
                 text(batch));
  }
  if (rois && (*rois)[1].is_known() && !(*rois)[1].is_known(4)) {
    return error(Code::kInvalidArgument, "rois have {} coordinates, expected 4", (*rois)[1].value());
  }
  if (rois && batch && (*rois)[0].is_known() && (*batch)[0].is_known() && !same((*rois)[0], (*batch)[0])) {
    return error(Code::kInvalidArgument, "batch_indices have {} elements, expected one for each of {} rois",
                 (*batch)[0].value(), (*rois)[0].value());
  }
  const int64_t height = c.attributes().get_int("output_height", 1), width = c.attributes().get_int("output_width", 1);
  if (height < 1 || width < 1)
    return error(Code::kInvalidModel, "attributes output_height and output_width are {} and {}, expected at least 1",
                 height, width);
  Dim count = rois ? (*rois)[0] : Dim();
  if (!count.is_known() && batch) count = (*batch)[0].is_known() || !rois ? (*batch)[0] : count;
  c.set_output(0, c.element(0), {count, x ? (*x)[1] : Dim(), Dim(height), Dim(width)});
  return {};
}

struct RoiState {
  int64_t rois = 0, batches = 0, channels = 0, height = 0, width = 0;
  int64_t out_height = 1, out_width = 1, sampling = 0;
  double scale = 1;
  bool half_pixel = false;  // from version 16 on: positions are centres of pixels
  bool max = false;
  ElementType type{};
  kernels::TileConverter widen, narrow;  // to double, and back
  uint32_t scratch = 0;  // operand number; for samples, and for images that are not float, converted to double
};

// A sampled position along an axis: between two elements, or too far outside to count.
struct Split {
  int64_t low = 0, high = 0;
  double rest = 0;  // share of the way from low to high
  bool inside = false;
};

Split split_of(double at, int64_t size) {
  if (!(at >= -1 && at <= static_cast<double>(size))) return {};
  const double v = std::max(at, 0.0);
  const auto low = static_cast<int64_t>(v);
  if (low >= size - 1) return {size - 1, size - 1, 0, true};
  return {low, low + 1, v - static_cast<double>(low), true};
}

// The four neighbours of a sampled point within a plane.
struct Neighbours {
  int64_t at[4] = {};
  double weight[4] = {};
};

Neighbours neighbours_of(const Split& y, const Split& x, int64_t width) {
  if (!y.inside || !x.inside) return {};
  const double dy = y.rest, dx = x.rest;
  return {{y.low * width + x.low, y.low * width + x.high, y.high * width + x.low, y.high * width + x.high},
          {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx}};
}

// Limit of samples per bin and axis, for windows that are larger than any image.
constexpr double kMostSamples = 4096;

struct Window {
  double start_y, start_x, bin_height, bin_width;
  int64_t samples_y, samples_x;
};

Window window_of(const RoiState& s, const double* roi) {
  const double offset = s.half_pixel ? 0.5 : 0;
  const double x0 = roi[0] * s.scale - offset, y0 = roi[1] * s.scale - offset;
  double width = roi[2] * s.scale - offset - x0, height = roi[3] * s.scale - offset - y0;
  if (!s.half_pixel) {
    width = std::max(width, 1.0);
    height = std::max(height, 1.0);
  }
  Window w{y0, x0, height / static_cast<double>(s.out_height), width / static_cast<double>(s.out_width), 0, 0};
  auto samples = [](double bin) { return bin > 0 ? static_cast<int64_t>(std::min(std::ceil(bin), kMostSamples)) : 0; };
  w.samples_y = s.sampling > 0 ? s.sampling : samples(w.bin_height);
  w.samples_x = s.sampling > 0 ? s.sampling : samples(w.bin_width);
  return w;
}

// Sampled positions of a window along one axis, the same for all planes. Kept in scratch if a bin has few of them.
struct Samples {
  static constexpr int64_t kMostKept = 32;  // of a bin

  double start, bin_size;
  int64_t count;  // of a bin
  int64_t size;   // of the image
  Split* kept;

  void keep(int64_t bins) {
    for (int64_t i = 0; count <= kMostKept && i < bins * count; ++i) kept[i] = find(i / count, i % count);
  }
  Split at(int64_t bin, int64_t i) const { return count <= kMostKept ? kept[bin * count + i] : find(bin, i); }

 private:
  Split find(int64_t bin, int64_t i) const {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    return split_of(start + (static_cast<double>(bin) + share) * bin_size, size);
  }
};

// One output element. The maximum is taken over weighted neighbours, as onnxruntime computes it.
template <class T>
double pool_bin(const RoiState& s, const Samples& rows, const Samples& columns, int64_t bin_y, int64_t bin_x,
                const T* plane, StopPoll& stop) {
  double sum = 0;
  bool first = true;
  for (int64_t i = 0; i < rows.count; ++i) {
    if (stop.after(costs::kRoiAlignSampleNs * static_cast<double>(columns.count))) return 0;
    const Split y = rows.at(bin_y, i);
    for (int64_t j = 0; j < columns.count; ++j) {
      const Neighbours n = neighbours_of(y, columns.at(bin_x, j), s.width);
      for (int k = 0; k < 4; ++k) {
        const double value = n.weight[k] * static_cast<double>(plane[n.at[k]]);
        sum = s.max ? (first ? value : std::max(sum, value)) : sum + value;
        first = false;
      }
    }
  }
  return s.max ? sum : sum / static_cast<double>(std::max<int64_t>(rows.count * columns.count, 1));
}

// The same for samples of a bin that are kept with their weights.
template <class T>
double pool_kept(bool max, const Neighbours* samples, int64_t count, const T* plane) {
  const auto value = [plane](const Neighbours& n, int k) { return n.weight[k] * static_cast<double>(plane[n.at[k]]); };
  if (max) {
    double most = value(samples[0], 0);
    for (int64_t i = 0; i < count; ++i) {
      for (int k = i == 0 ? 1 : 0; k < 4; ++k) most = std::max(most, value(samples[i], k));
    }
    return most;
  }
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < 4; ++k) sum += value(samples[i], k);
  }
  return sum / static_cast<double>(count);
}

// How many samples of a region are kept with their neighbours and weights, which all channels share.
int64_t most_kept(const RoiState& s) {
  constexpr int64_t kMost = 4096;
  const int64_t bins = s.out_height * s.out_width;
  return s.sampling > 0 && s.sampling * s.sampling <= kMost / bins ? bins * s.sampling * s.sampling : kMost;
}

// One region for all channels.
template <class T>
bool pool_region(const RoiState& s, const Samples& rows, const Samples& columns, Neighbours* kept, const T* planes,
                 char* out, StopPoll& stop) {
  constexpr int64_t kBins = 64;  // converted at a time
  const int64_t bins = s.out_height * s.out_width, count = rows.count * columns.count;
  const bool keeps = count > 0 && count <= most_kept(s) / bins;
  for (int64_t bin = 0; keeps && bin < bins; ++bin) {
    for (int64_t i = 0; i < count; ++i) {
      kept[bin * count + i] = neighbours_of(rows.at(bin / s.out_width, i / columns.count),
                                            columns.at(bin % s.out_width, i % columns.count), s.width);
    }
  }
  const size_t width = byte_width(s.type);
  for (int64_t c = 0; c < s.channels; ++c, planes += s.height * s.width) {
    for (int64_t first = 0; first < bins; first += kBins) {
      double values[kBins];
      const int64_t some = std::min(kBins, bins - first);
      for (int64_t i = 0; i < some; ++i) {
        const int64_t bin = first + i;
        values[i] = keeps ? pool_kept(s.max, kept + bin * count, count, planes)
                          : pool_bin(s, rows, columns, bin / s.out_width, bin % s.out_width, planes, stop);
      }
      kernels::convert(s.narrow, values, out, static_cast<size_t>(some));
      out += static_cast<size_t>(some) * width;
      const double kept_ns = keeps ? costs::kRoiAlignKeptNs * static_cast<double>(count) : 0;
      if (stop.after(static_cast<double>(some) * (costs::kRoiAlignSampleNs + kept_ns))) return false;
    }
  }
  return true;
}

uint32_t run_roi_align(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const RoiState*>(state);
  const bool is_float = s.type == ElementType::kFloat;
  const auto* floats = static_cast<const float*>(slots[operands[0]]);
  auto* splits = static_cast<Split*>(slots[operands[s.scratch]]);
  auto* kept = reinterpret_cast<Neighbours*>(splits + Samples::kMostKept * (s.out_height + s.out_width));
  auto* doubles = reinterpret_cast<double*>(kept + most_kept(s));
  const int64_t image = s.channels * s.height * s.width;
  if (!is_float) parallel_convert(s.widen, floats, doubles, static_cast<size_t>(s.batches * image));
  const auto* rois = static_cast<const char*>(slots[operands[1]]);
  const auto* batch = static_cast<const int64_t*>(slots[operands[2]]);
  auto* out = static_cast<char*>(slots[operands[3]]);
  const size_t width = byte_width(s.type);
  const auto region = static_cast<size_t>(s.channels * s.out_height * s.out_width) * width;
  StopPoll stop;
  for (int64_t r = 0; r < s.rois; ++r, out += region) {
    if (batch[r] < 0 || batch[r] >= s.batches) return refuse_element({"batch_indices", r}, batch[r], 0, s.batches - 1);
    double roi[4];
    kernels::convert(s.widen, rois + static_cast<size_t>(r) * 4 * width, roi, 4);
    const Window w = window_of(s, roi);
    Samples rows{w.start_y, w.bin_height, w.samples_y, s.height, splits};
    Samples columns{w.start_x, w.bin_width, w.samples_x, s.width, splits + Samples::kMostKept * s.out_height};
    rows.keep(s.out_height);
    columns.keep(s.out_width);
    const bool goes_on = is_float ? pool_region(s, rows, columns, kept, floats + batch[r] * image, out, stop)
                                  : pool_region(s, rows, columns, kept, doubles + batch[r] * image, out, stop);
    if (!goes_on) return fail(KernelError::kStopped);
  }
  return 0;
}

Status prepare_roi_align(PrepareContext& c) {
  const Operand& x = c.inputs[0];
  auto* s = c.make_state<RoiState>();
  s->rois = c.inputs[1].dims[0];
  s->batches = x.dims[0];
  s->channels = x.dims[1];
  s->height = x.dims[2];
  s->width = x.dims[3];
  if (s->height * s->width == 0 && c.outputs[0].element_count() > 0) {
    return error(Code::kInvalidArgument, "X has shape {}, expected at least one element to sample", to_string(x.dims));
  }
  s->out_height = c.outputs[0].dims[2];
  s->out_width = c.outputs[0].dims[3];
  s->sampling = c.attributes().get_int("sampling_ratio", 0);
  if (s->sampling > static_cast<int64_t>(kMostSamples)) {
    return error(Code::kLimit, "sampling_ratio is {}, expected {} at most", s->sampling, kMostSamples);
  }
  s->scale = c.attributes().get_float("spatial_scale", 1);
  s->half_pixel = c.attributes().get_string("coordinate_transformation_mode", "output_half_pixel") == "half_pixel";
  s->max = c.attributes().get_string("mode", "avg") == "max";
  s->type = x.type;
  s->widen = kernels::make_converter(x.type, ElementType::kDouble);
  s->narrow = kernels::make_converter(ElementType::kDouble, x.type);
  s->scratch = c.scratch_operand();
  c.scratch_bytes = static_cast<size_t>(Samples::kMostKept * (s->out_height + s->out_width)) * sizeof(Split) +
                    static_cast<size_t>(most_kept(*s)) * sizeof(Neighbours);
  if (x.type != ElementType::kFloat) c.scratch_bytes += static_cast<size_t>(x.element_count()) * sizeof(double);
  c.set_kernel(run_roi_align, s);
  return {};
}

// --- NonMaxSuppression

Status infer_non_max_suppression(InferContext& c) {
  const Shape *boxes = c.shape(0), *scores = c.shape(1);
  if ((boxes && boxes->size() != 3) || (scores && scores->size() != 3)) {
    const auto text = [](const Shape* shape) { return shape ? to_string(*shape) : "?"; };
    return error(Code::kInvalidArgument, "boxes and scores have shapes {} and {}, expected rank 3", text(boxes),
                 text(scores));
  }
  const bool fit = !boxes || (!differ((*boxes)[2], Dim(4)) &&
                              (!scores || (!differ((*boxes)[0], (*scores)[0]) && !differ((*boxes)[1], (*scores)[2]))));
  if (!fit) {
    return error(Code::kInvalidArgument, "boxes and scores have shapes {} and {}, expected [B,N,4] and [B,C,N]",
                 to_string(*boxes), scores ? to_string(*scores) : std::string("?"));
  }
  c.set_output(0, ElementType::kInt64, {Dim::unknown(), Dim(int64_t{3})});
  return {};
}

struct Box {
  float x0, y0, x1, y1;
};

// A box from [y1, x1, y2, x2] of opposite corners in any order, or from [x, y, width, height] around the centre.
Box box_from(const float* b, bool center) {
  if (center) return {b[0] - b[2] / 2, b[1] - b[3] / 2, b[0] + b[2] / 2, b[1] + b[3] / 2};
  return {std::min(b[1], b[3]), std::min(b[0], b[2]), std::max(b[1], b[3]), std::max(b[0], b[2])};
}

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (width <= 0 || height <= 0) return false;
  const float both = width * height;
  const float area_a = (a.x1 - a.x0) * (a.y1 - a.y0), area_b = (b.x1 - b.x0) * (b.y1 - b.y0);
  const float either = area_a + area_b - both;
  return area_a > 0 && area_b > 0 && either > 0 && both / either > threshold;
}

struct Suppression {
  int64_t limit = 0;  // boxes per class
  float iou_threshold = 0;
  bool has_score_threshold = false;
  float score_threshold = 0;
};

// The boxes to keep, best score first; for equal scores, the lower index first.
Result<CountedVector<int64_t>> select_boxes(const Suppression& s, const CountedVector<Box>& boxes,
                                            const float* scores) {
  CountedVector<int64_t> candidates, kept;
  const bool listed =
      in_pieces(static_cast<int64_t>(boxes.size()), costs::kSuppressionBoxNs, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          if (!s.has_score_threshold || scores[i] > s.score_threshold) candidates.push_back(i);
        }
      });
  const auto better = [scores](int64_t a, int64_t b) {
    if (scores[a] > scores[b]) return true;
    if (scores[b] > scores[a]) return false;
    const bool a_is_nan = scores[a] != scores[a], b_is_nan = scores[b] != scores[b];
    return a_is_nan != b_is_nan ? b_is_nan : a < b;
  };
  if (!listed || !kernels::sort(candidates.data(), static_cast<int64_t>(candidates.size()), better)) return stopped();
  StopPoll stop;
  for (int64_t i : candidates) {
    if (static_cast<int64_t>(kept.size()) >= s.limit) break;
    const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](int64_t k) {
      return overlaps(boxes[static_cast<size_t>(i)], boxes[static_cast<size_t>(k)], s.iou_threshold);
    });
    if (!suppressed) kept.push_back(i);
    if (stop.after(costs::kSuppressionBoxNs * static_cast<double>(kept.size()))) return stopped();
  }
  return kept;
}

Result<Suppression> suppression_of(const ComputeContext& c) {
  for (size_t i = 2; i < c.inputs.size(); ++i) {
    if (c.has_input(i) && c.tensor(i).element_count() != 1) {
      return error(Code::kInvalidArgument, "{} has {} elements, expected 1", c.node.version->inputs[i].name,
                   c.tensor(i).element_count());
    }
  }
  Suppression s;
  if (c.has_input(2)) s.limit = c.tensor(2).int64_at(0);
  if (c.has_input(3)) s.iou_threshold = c.tensor(3).data<float>()[0];
  s.has_score_threshold = c.has_input(4);
  if (s.has_score_threshold) s.score_threshold = c.tensor(4).data<float>()[0];
  if (!(s.iou_threshold >= 0 && s.iou_threshold <= 1)) {
    return error(Code::kInvalidArgument, "iou_threshold is {}, expected 0 to 1", s.iou_threshold);
  }
  return s;
}

Status compute_non_max_suppression(ComputeContext& c) {
  const Dims &boxes = c.tensor(0).dims(), &scores = c.tensor(1).dims();
  if (boxes.size() != 3 || scores.size() != 3 || boxes[2] != 4 || boxes[0] != scores[0] || boxes[1] != scores[2]) {
    return error(Code::kInvalidArgument, "boxes and scores have shapes {} and {}, expected [B,N,4] and [B,C,N]",
                 to_string(boxes), to_string(scores));
  }
  TREADLE_ASSIGN(const Suppression s, suppression_of(c));
  const bool center = c.attributes().get_int("center_point_box", 0) != 0;
  const int64_t count = boxes[1];
  CountedVector<int64_t> selected;
  for (int64_t b = 0; b < boxes[0]; ++b) {
    CountedVector<Box> list;
    const bool listed = in_pieces(count, costs::kSuppressionBoxNs, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        list.push_back(box_from(c.tensor(0).data<float>() + (b * count + i) * 4, center));
      }
    });
    if (!listed) return stopped();
    for (int64_t k = 0; k < scores[1]; ++k) {
      const float* row = c.tensor(1).data<float>() + (b * scores[1] + k) * count;
      TREADLE_ASSIGN(const auto chosen, select_boxes(s, list, row));
      for (int64_t i : chosen) selected.insert(selected.end(), {b, k, i});
    }
  }
  const auto rows = static_cast<int64_t>(selected.size() / 3);
  TREADLE_ASSIGN(Tensor * out, c.allocate(0, ElementType::kInt64, {rows, 3}));
  std::copy(selected.begin(), selected.end(), out->mutable_data<int64_t>());
  return {};
}

// Channels of the image are independent, and so are regions.
Status region_axes(AxisContext& c) {
  if (!c.runs_along(0)) return axes::entries_of<0b110>(c);
  TREADLE_TRY(axes::only_first(c));
  return c.in(0) == 1 ? c.give(0, 1) : looks_along("its regions lie across it");
}

}  // namespace
}  // namespace treadle

TREADLE_OP(RoiAlign, "") {
  op.since(10)
      .in("X", "T1")
      .in("rois", "T1")
      .in("batch_indices", "T2")
      .out("Y", "T1")
      .attr("mode", "avg")
      .attr("output_height", 1)
      .attr("output_width", 1)
      .attr("sampling_ratio", 0)
      .attr("spatial_scale", 1.0)
      .type("T1", types::kFloats)
      .type("T2", types::kInt64s);
  op.since(16).attr("coordinate_transformation_mode", "half_pixel");
  op.since(22).type("T1", types::kFloatsBf16);
  op.infer(infer_roi_align).prepare(prepare_roi_align).can_fail().axes(region_axes);
}

TREADLE_OP(NonMaxSuppression, "") {
  op.since(10)
      .in("boxes", "tensor(float)")
      .in("scores", "tensor(float)")
      .in("max_output_boxes_per_class", "tensor(int64)", Arity::kOptional)
      .in("iou_threshold", "tensor(float)", Arity::kOptional)
      .in("score_threshold", "tensor(float)", Arity::kOptional)
      .out("selected_indices", "tensor(int64)")
      .attr("center_point_box", 0);
  op.since(11);
  op.infer(infer_non_max_suppression)
      .compute(compute_non_max_suppression)
      .no_axes("what it selects depends on all positions");
}
