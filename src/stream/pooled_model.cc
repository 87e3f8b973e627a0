#include "stream/pooled_model.h"

namespace treadle {

namespace {

class Finder {
 public:
  Finder(const StreamLayout& layout, PooledModel& model) : layout_(layout), model_(model) {}

  Status find() {
    if (layout_.over_time && !layout_.given.empty()) {
      return error(Code::kInvalidArgument, "input '{}' is given with each push: bind it", layout_.given[0]->name);
    }
    if (layout_.timed.empty() && layout_.given.empty()) return error(Code::kInvalidArgument, "a push gives nothing");
    for (const StreamLayout::Timed& t : layout_.timed) timed_.push_back({t.input->name, t.axis});
    for (const StreamLayout::State& s : layout_.states) {
      if (s.input->has_default && !s.has_initial) {
        return error(Code::kInvalidArgument, "state '{}' begins with the model's own value", s.input->name);
      }
      carried_.push_back(s.input->name);
    }
    return layout_.over_time ? find_over_time() : find_windows();
  }

 private:
  Status find_windows() {
    if (layout_.hop == 0 && !layout_.timed.empty()) return error(Code::kInvalidArgument, "there is no hop");
    TREADLE_ASSIGN(const auto windows, BatchedModel::make(*layout_.session, timed_, carried_, layout_.bound,
                                                          layout_.context + layout_.hop));
    model_.begins_in_group = true;
    TREADLE_TRY(take_axes(*windows->session, windows->batch));
    TREADLE_ASSIGN(model_.layout, layout_.on({windows, windows->session.get()}, nullptr));
    return {};
  }

  Status find_over_time() {
    TREADLE_ASSIGN(const auto batched, OverTime::make_batched(*layout_.session, timed_, carried_, layout_.bound));
    const OverTime& single = *layout_.over_time;
    if (batched->hop != single.hop || batched->first != single.first || batched->states != single.states) {
      return error(Code::kInvalidArgument, "a batch is taken in other blocks");
    }
    model_.begins_in_group = batched->begins_with_zeros;
    TREADLE_TRY(take_axes(*batched->steady, batched->batch));
    TREADLE_ASSIGN(model_.layout, layout_.on({batched, batched->start.get()}, batched));
    return {};
  }

  Status take_axes(const Session& session, const stream::BatchAxes& batch) {
    const std::vector<ir::Value*>& inputs = session.graph().top().inputs;
    const auto axis_of = [&](std::string_view name) -> int64_t {
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i]->name == name) return batch.inputs[i];
      }
      return kNoAxis;
    };
    for (const StreamLayout::Timed& t : layout_.timed) model_.fed.push_back({t.input, t.at, 0, t.axis});
    for (size_t i = 0; i < layout_.inputs.size(); ++i) {
      const StreamLayout::Input& input = layout_.inputs[i];
      const bool is_given = input.role == StreamLayout::Role::kGiven && !input.info->has_default;
      if (is_given) model_.fed.push_back({input.info, i, 0, -1});
    }
    for (PooledModel::Fed& fed : model_.fed) {
      fed.batch = axis_of(fed.info->name);
      if (fed.batch == kNoAxis) return error(Code::kInvalidArgument, "input '{}' has no batch", fed.info->name);
    }
    const size_t found = layout_.over_time ? layout_.over_time->states.size() : 0;
    for (size_t i = 0; i < layout_.states.size() + found; ++i) {
      const std::string& name = layout_.state_name(i);
      model_.states.push_back(axis_of(name));
      const size_t output = layout_.block_outputs[layout_.outputs.size() + i];
      if (model_.states.back() != kNoAxis && model_.states.back() == batch.outputs[output]) continue;
      return error(Code::kInvalidArgument, "state '{}' is one for the whole batch", name);
    }
    for (const StreamLayout::Output& o : layout_.outputs) model_.outputs.push_back(batch.outputs[o.index]);
    for (size_t i = 0; i < layout_.states.size(); ++i) model_.begins_in_group &= keeps_sizes(i);
    return {};
  }

  // Whether the initial zeros of a declared state have its later sizes, apart from the batch.
  bool keeps_sizes(size_t state) const {
    if (layout_.states[state].has_initial) return true;  // compared once they are known
    const Type& type = layout_.states[state].input->type;
    for (size_t i = 0; i < type.shape.size(); ++i) {
      if (!type.shape[i].is_known() && static_cast<int64_t>(i) != model_.states[state]) return false;
    }
    return type.has_shape;
  }

  const StreamLayout& layout_;
  PooledModel& model_;
  std::vector<stream::TimedInput> timed_;
  std::vector<std::string_view> carried_;
};

}  // namespace

std::shared_ptr<const PooledModel> PooledModel::make(const StreamLayout& layout) {
  auto model = std::make_shared<PooledModel>();
  const Status status = Finder(layout, *model).find();
  if (!status.ok()) {
    model->layout = nullptr;
    model->why_single = status.message();
  }
  return model;
}

int64_t PooledModel::result_axis(size_t output) const {
  const bool stacked = layout->hop > 0 && layout->outputs[output].time_axis < 0;
  return outputs[output] == kNoAxis ? kNoAxis : outputs[output] + (stacked ? 1 : 0);
}

int64_t PooledModel::joined_axis(size_t output) const {
  const int64_t time = layout->outputs[output].time_axis;
  return time < 0 && layout->hop > 0 ? 0 : time;
}

}  // namespace treadle
