#include "jit/locations.h"

#include <algorithm>

#include "jit/gathers.h"
#include "jit/lane_maths.h"
#include "jit/moves.h"
#include "jit/nest.h"
#include "jit/reductions.h"
#include "jit/row_product.h"
#include "plan/roles.h"

namespace treadle::jit {

namespace {

using plan::ElementwiseCode;
using plan::Instruction;
using plan::kNoSlot;
using plan::Loop;
using plan::OpCode;
using plan::Program;
using plan::Role;
using plan::Slot;
using plan::SlotUse;
using plan::Storage;
using plan::When;

// How the loop uses a slot.
struct Use {
  bool read = false;     // inline code reads its elements
  bool written = false;  // inline code, kernels or the engine write it
  bool shared = false;   // kernels or the engine access it
  bool address = false;  // its address is used
  bool moves = false;
};

int64_t count_of(const Type& type) {
  int64_t count = 1;
  for (const Dim& d : type.shape) count *= d.value();
  return count;
}

class Survey {
 public:
  Survey(const plan::NativeRequest& request, const Chunks& chunks)
      : request_(request),
        p_(*request.program),
        loop_(p_.loops[request.loop]),
        chunks_(chunks),
        uses_(p_.slots.size()) {
    layout_.locations.resize(p_.slots.size());
    layout_.written.assign(loop_.last - loop_.first + 1, Written::kCall);
    layout_.inline_loop.assign(p_.loops.size(), false);
  }

  Layout run() {
    std::vector<uint32_t> elementwise;
    for (uint32_t pc = loop_.first + 1; pc < loop_.last; ++pc) {
      if (p_.code[pc].code != OpCode::kKernel || !is_inline(pc)) continue;
      layout_.written[pc - loop_.first] = Written::kInline;
      if (!request_.other(pc)) elementwise.push_back(pc);
    }
    layout_.shape = choose_shape(request_, chunks_, elementwise);
    for (const uint32_t pc : layout_.shape.kernels) layout_.written[pc - loop_.first] = Written::kCall;
    visit_loop(request_.loop);
    for (uint32_t pc = loop_.first + 1; pc < loop_.last; ++pc) visit(pc);
    choose();
    return std::move(layout_);
  }

 private:
  void read(uint32_t s) { uses_[s].read = true; }
  void write(uint32_t s) { uses_[s].written = true; }

  void visit(uint32_t pc) {
    const Instruction& in = p_.code[pc];
    if (in.code == OpCode::kLoopBegin) return visit_loop(in.index);
    const bool is_kernel = in.code == OpCode::kKernel;
    if (is_kernel && layout_.written[pc - loop_.first] == Written::kInline) return visit_inline(pc);
    plan::for_each_slot(p_, pc, [&](const SlotUse& use) { touch(use, is_kernel || is_value(use.role)); });
  }

  // `shared`: a kernel or the engine uses the slot, not inline code.
  void touch(const SlotUse& use, bool shared) {
    Use& slot = uses_[use.slot];
    slot.shared |= shared;
    switch (use.role) {
      case Role::kReads:
        slot.read |= !shared;
        break;
      case Role::kWrites:
      case Role::kWritesValue:
      case Role::kScratch:
      case Role::kKeeps:
        slot.written = true;
        break;
      case Role::kReadsValue:
        break;
      case Role::kReadsRows:
      case Role::kWritesRows:
        slot.address = true;
        break;
      case Role::kPoints:
        slot.moves = true;
        break;
      case Role::kCarries:
        slot.written = true;
        slot.moves |= shared;
        break;
      case Role::kHandsOn:
        slot.read |= !shared;
        slot.moves |= shared;
        break;
    }
  }

  bool is_inline(uint32_t pc) const {
    if (const auto* other = request_.other(pc)) {
      return std::visit([&](const auto& code) { return writes(code); }, *other);
    }
    if (!request_.elementwise(pc) || request_.elementwise(pc)->count < 1) return false;
    const ElementwiseCode& code = *request_.elementwise(pc);
    if (!std::all_of(code.steps.begin(), code.steps.end(), supports_step)) return false;
    if (!code.reductions.empty()) return one_thread(code.count) && nest_of_lines(code);
    return chunks_.is_short(code.count) || (one_thread(code.count) && common_nest(code));
  }

  // Whether one thread computes the elements. A kernel may split more of them among threads.
  bool one_thread(int64_t count) const { return p_.threads == 1 || count <= kLongestOnOneThread; }

  // Whether everything fits registers, or the code walks along contiguous rows, or down columns.
  bool writes_lines(int64_t outer, int64_t n, int64_t inner) const {
    if (chunks_.is_short(outer * n * inner)) return true;
    return one_thread(outer * n * inner) && (inner == 1 ? chunks_.is_short(n) : n <= LaneMaths::kLongestChain);
  }
  static int64_t product_of(const Dims& dims) {
    return element_count_unchecked(std::span<const int64_t>(dims.data(), dims.size()));
  }
  bool writes(const plan::ReductionCode& code) const {
    if (!LaneMaths::supports(code)) return false;
    const int64_t outputs = product_of(code.kept), n = product_of(code.reduced);
    if (chunks_.is_short(outputs * n)) return true;
    const int64_t inner = code.columns ? code.kept.back() : 1;
    return code.reduced.size() == 1 && code.kept.size() <= (code.columns ? 2 : 1) &&
           writes_lines(outputs / inner, n, inner);
  }
  bool writes(const plan::ArgReductionCode& code) const {
    return LaneMaths::supports(code) && writes_lines(code.outer, code.n, code.inner);
  }
  bool writes(const plan::GatherCode& code) const { return gathers(code); }
  bool writes(const plan::ProductCode& code) const {
    return multiplies_rows(code, request_, chunks_, p_.threads) || fits_vectors(code);
  }
  bool fits_vectors(const plan::ProductCode& code) const {
    return LaneMaths::supports(code) && chunks_.is_short(code.a_count) && chunks_.is_short(code.b_count) &&
           chunks_.is_short(code.c_count) && chunks_.is_short(code.bias_count);
  }
  bool writes(const plan::MoveCode& code) const {
    return jit::fits_vectors(code, chunks_) || moves_vectors(code, chunks_) || writes_regions(code);
  }
  bool writes_regions(const plan::MoveCode& code) const {
    int64_t count = 0;
    for (const auto& region : code.regions) count += product_of(region.dims);
    return one_thread(count) && moves_regions(code);
  }

  void visit_inline(uint32_t pc) {
    if (const auto* other = request_.other(pc)) {
      return std::visit([&](const auto& code) { visit_other(code); }, *other);
    }
    const ElementwiseCode& code = *request_.elementwise(pc);
    const bool walks = layout_.shape.tiles.contains(pc);  // a loop over memory
    for (const ElementwiseCode::Input& in : code.inputs) {
      read(in.slot);
      if (walks && in.broadcast != ElementwiseCode::Broadcast::kScalar) uses_[in.slot].address = true;
    }
    for (const ElementwiseCode::Output& out : code.outputs) {
      write(out.slot);
      if (walks) uses_[out.slot].address = true;
    }
    for (const ElementwiseCode::Reduction& reduction : code.reductions) {
      write(reduction.slot);
      if (!is_single(code.lines)) uses_[reduction.slot].address = true;
    }
  }

  void visit_rows(uint32_t from, uint32_t to, int64_t count) {
    read(from);
    write(to);
    if (!chunks_.is_short(count)) uses_[from].address = uses_[to].address = true;
  }
  void visit_other(const plan::ReductionCode& code) {
    visit_rows(code.from, code.to, product_of(code.kept) * product_of(code.reduced));
  }
  void visit_other(const plan::ArgReductionCode& code) {
    visit_rows(code.from, code.to, code.outer * code.n * code.inner);
  }
  void visit_other(const plan::GatherCode& code) {
    read(code.data);
    read(code.index);
    write(code.to);
    uses_[code.data].address = true;
    if (gathers_to_memory(code, chunks_)) uses_[code.index].address = uses_[code.to].address = true;
  }
  void visit_other(const plan::ProductCode& code) {
    const bool by_rows = multiplies_rows(code, request_, chunks_, p_.threads);
    for (const uint32_t s : {code.a, code.bias}) read(s);
    // A packed constant is not read from its slot.
    if (!by_rows || code.panels.columns == 0) read(code.b);
    if (by_rows && code.panels.columns == 0) uses_[code.b].address = true;
    write(code.c);
  }
  void visit_other(const plan::MoveCode& code) {
    if (!jit::fits_vectors(code, chunks_) && !moves_vectors(code, chunks_)) {
      for (const auto& region : code.regions) {
        if (region.from != kNoSlot) read(region.from), uses_[region.from].address = true;
        write(region.to);
        uses_[region.to].address = true;
      }
      return;
    }
    for (const auto& in : code.inputs) read(in.slot);
    for (const auto& out : code.outputs) write(out.slot);
  }

  // Whether the loop's begin and end are a few copies. The engine handles other loops.
  bool begins_inline(const Loop& loop) const {
    if (!loop.step.simple || loop.step.grows || loop.masked) return false;
    auto planned = [&](uint32_t s) { return p_.slots[s].storage != Storage::kHandle; };
    return planned(loop.trip_count) && planned(loop.condition) && (!loop.is_scan || loop.known_iterations >= 0) &&
           std::all_of(loop.states.begin(), loop.states.end(), [&](const auto& s) { return planned(s.initial); }) &&
           std::all_of(loop.scan_inputs.begin(), loop.scan_inputs.end(),
                       [&](const auto& s) { return planned(s.whole); }) &&
           std::all_of(loop.scan_outputs.begin(), loop.scan_outputs.end(),
                       [](const auto& s) { return s.whole_planned; });
  }

  void visit_loop(uint32_t index) {
    const Loop& loop = p_.loops[index];
    const bool outer = index == request_.loop;
    const bool written_out = outer ? loop.step.simple : begins_inline(loop);
    layout_.inline_loop[index] = written_out;
    plan::for_each_slot(loop, [&](const SlotUse& use) {
      const bool is_around = use.when == When::kBegin || use.when == When::kEnd;
      if (!(outer && is_around)) touch(use, !written_out);
    });
  }

  bool fits_registers(uint32_t s, const Use& use) const {
    const Slot& slot = p_.slots[s];
    const bool readable =
        slot.storage == Storage::kArena || slot.storage == Storage::kInput || slot.storage == Storage::kConstant;
    if (s == kNoSlot || !readable || use.address || use.moves || (use.shared && use.written)) return false;
    if (!(use.read || use.written) || slot.type.kind != Type::Kind::kTensor || !slot.type.has_shape) return false;
    for (const Dim& d : slot.type.shape) {
      if (!d.is_known()) return false;
    }
    if (!plan::is_native(slot.type.element)) return false;
    const int64_t count = count_of(slot.type);
    return count > 0 && chunks_.is_short(count);
  }

  void choose() {
    for (uint32_t s = 1; s < uses_.size(); ++s) {
      const Use& use = uses_[s];
      Location& place = layout_.locations[s];
      if (!use.read && !use.written && !use.shared && !use.address && !use.moves) continue;
      if (fits_registers(s, use)) {
        place = {LocationKind::kRegister, p_.slots[s].type.element, count_of(p_.slots[s].type), false};
      } else {
        place.kind = LocationKind::kPointer;
      }
    }
    // The back edge swaps states that are in memory.
    for (size_t i = 0; i < p_.loops.size(); ++i) {
      if (!layout_.inline_loop[i]) continue;
      for (const auto& [in, out, bytes] : p_.loops[i].step.swaps) {
        if (layout_.locations[in].kind != LocationKind::kPointer ||
            layout_.locations[out].kind != LocationKind::kPointer)
          continue;
        uses_[in].moves = uses_[out].moves = true;
      }
    }
    for (uint32_t s = 1; s < uses_.size(); ++s) {
      Location& place = layout_.locations[s];
      if (place.kind != LocationKind::kPointer) continue;
      place.moves = uses_[s].moves;
      const bool handle = p_.slots[s].storage == Storage::kHandle;
      if (handle || (place.moves && uses_[s].shared)) place.kind = LocationKind::kTable;
    }
  }

  static constexpr int64_t kLongestOnOneThread = 8192;  // five fused operations on as many take kMinTeamNs

  const plan::NativeRequest& request_;
  const Program& p_;
  const Loop& loop_;
  const Chunks& chunks_;
  std::vector<Use> uses_;
  Layout layout_;
};

}  // namespace

Layout lay_out(const plan::NativeRequest& request, const Chunks& chunks) {
  return Survey(request, chunks).run();
}

}  // namespace treadle::jit
