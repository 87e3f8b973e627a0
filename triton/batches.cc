#include "batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace backend {

Batches::Batches(TRITONBACKEND_ModelInstance* instance, const Model& model) : Runner(instance), model_(model) {}

Batches::Part Batches::part_of(Work& work) const {
  Part part;
  part.work = &work;
  for (const std::string& name : model_.fed) part.inputs.push_back(work.input(name));
  if (model_.config.max_batch == 0) return part;
  bool is_first = true;
  for (const Arrived* input : part.inputs) {
    if (!input) continue;
    const int64_t entries = input->dims.empty() ? 0 : input->dims[0];
    if (!is_first && entries != part.entries) {
      throw InvalidArgument(
          fmt::format("input '{}' has {} entries, and those before it {}", input->name, entries, part.entries));
    }
    part.entries = entries;
    is_first = false;
  }
  return part;
}

// Whether two requests can be entries of one batch: they give the same inputs, which differ only in the number of
// entries.
bool Batches::go_together(const Part& one, const Part& other) const {
  if (model_.config.max_batch == 0) return false;
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    const Arrived *a = one.inputs[i], *b = other.inputs[i];
    if (!a != !b) return false;
    if (a && !std::ranges::equal(a->dims.subspan(1), b->dims.subspan(1))) return false;
  }
  return true;
}

treadle::Value Batches::gather(const Group& group, size_t input, int64_t entries) const {
  const Arrived& first = *group[0].inputs[input];
  if (group.size() == 1) return tensor_of(first);
  std::vector<int64_t> dims(first.dims.begin(), first.dims.end());
  dims[0] = entries;
  if (first.type == TRITONSERVER_TYPE_BYTES) {
    std::vector<std::string> texts;
    for (const Part& part : group) {
      for (std::string& text : texts_of(*part.inputs[input])) texts.push_back(std::move(text));
    }
    return treadle::Value::texts(texts, dims);
  }
  treadle::Value value = treadle::Value::tensor(element_of(first.type), dims);
  const size_t of_entry = value.bytes() / static_cast<size_t>(std::max<int64_t>(entries, 1));
  char* to = value.mutable_data<char>();
  for (const Part& part : group) {
    const Arrived& arrived = *part.inputs[input];
    if (arrived.bytes != of_entry * static_cast<size_t>(part.entries)) {
      throw InvalidArgument(fmt::format("input '{}' is to have {} bytes for its shape {}, and has {}", arrived.name,
                                        of_entry * static_cast<size_t>(part.entries), shape_text(arrived.dims),
                                        arrived.bytes));
    }
    if (arrived.bytes > 0) copy_bytes(arrived, to);
    to += arrived.bytes;
  }
  return value;
}

// Outputs that a request of the group asks for, and outputs that are states.
std::vector<const char*> Batches::wanted(const Group& group) const {
  std::vector<const char*> names;
  for (const Config::State& state : model_.config.states) names.push_back(state.output.c_str());
  for (const Config::Tensor& output : model_.config.outputs) {
    const bool is_state =
        std::ranges::find(model_.config.states, output.name, &Config::State::output) != model_.config.states.end();
    if (is_state || std::ranges::none_of(group, [&](const Part& p) { return p.work->requests_output(output.name); }))
      continue;
    names.push_back(output.name.c_str());
  }
  return names;
}

std::vector<treadle::Value> Batches::results_of(const Group& group, const std::vector<const char*>& names) const {
  int64_t entries = 0;
  for (const Part& part : group) entries += part.entries;
  std::vector<treadle::Value> values;
  std::vector<const char*> inputs;
  std::vector<const treadle_value*> handles;
  for (size_t i = 0; i < model_.fed.size(); ++i) {
    if (!group[0].inputs[i]) continue;
    values.push_back(gather(group, i, entries));
    inputs.push_back(model_.fed[i].c_str());
  }
  for (const treadle::Value& value : values) handles.push_back(value.get());
  for (const auto& [name, value] : model_.bound) {
    inputs.push_back(name.c_str());
    handles.push_back(value.get());
  }
  std::vector<treadle_value*> made(names.size(), nullptr);
  check(treadle_session_run(model_.session.get(), nullptr, inputs.data(), handles.data(), inputs.size(), names.data(),
                            names.size(), made.data()));
  std::vector<treadle::Value> results;
  for (treadle_value* value : made) results.emplace_back(value);
  for (size_t i = 0; group.size() > 1 && i < results.size(); ++i) {
    const bool is_split = results[i].kind() == TREADLE_TENSOR && treadle_tensor_rank(results[i].get()) > 0 &&
                          treadle_tensor_dims(results[i].get())[0] == entries;
    if (is_split) continue;
    throw Failure(TRITONSERVER_ERROR_UNSUPPORTED,
                  fmt::format("output '{}' is {} for a batch of {}: its first axis is not the batch; write "
                              "max_batch_size: 0 and all sizes in dims",
                              names[i], results[i].type_text(), entries));
  }
  return results;
}

void Batches::respond(Part& part, const std::vector<const char*>& names, const std::vector<treadle::Value>& results,
                      int64_t begin, int64_t entries) {
  answer(*part.work, [&](TRITONBACKEND_Response* response) {
    for (size_t i = 0; i < results.size(); ++i) {
      const treadle_value* value = results[i].get();
      const bool is_state = i < model_.config.states.size();
      const bool is_asked = part.work->requests_output(names[i]);
      if (results[i].kind() == TREADLE_NONE || (!is_state && !is_asked)) continue;
      const int64_t* dims = treadle_tensor_dims(value);
      Output output(names[i], value, std::vector<int64_t>(dims, dims + treadle_tensor_rank(value)));
      if (part.entries != entries) {
        const int64_t of_entry = output.end / entries;
        output.dims[0] = part.entries;
        output.begin = begin * of_entry;
        output.end = (begin + part.entries) * of_entry;
      }
      if (is_asked) add_output(response, output);
      if (is_state) update_state(part.work->request, output);
    }
  });
}

void Batches::run_group(Group group) {
  const std::vector<const char*> names = wanted(group);
  int64_t entries = 0, begin = 0;
  for (const Part& part : group) entries += part.entries;
  try {
    begin_compute();
    const std::vector<treadle::Value> results = results_of(group, names);
    end_compute();
    for (Part& part : group) {
      respond(part, names, results, begin, entries);
      begin += part.entries;
    }
    return;
  } catch (const Failure& failure) {
    end_compute();
    if (group.size() == 1) {
      group[0].work->failure = failure;
      return answer(*group[0].work, {});
    }
  }
  for (const Part& part : group) run_group({part});  // one request's error does not affect the others
}

void Batches::run(std::span<Work> works) {
  std::vector<Group> groups;
  for (Work& work : works) {
    try {
      if (work.failure) throw Failure(*work.failure);
      Part part = part_of(work);
      const auto fits = [&](const Group& group) { return go_together(group[0], part); };
      const auto found = std::ranges::find_if(groups, fits);
      if (found == groups.end()) {
        groups.push_back({std::move(part)});
      } else {
        found->push_back(std::move(part));
      }
    } catch (const Failure& failure) {
      work.failure = failure;
      answer(work, {});
    }
  }
  for (Group& group : groups) run_group(std::move(group));
}

}  // namespace backend
