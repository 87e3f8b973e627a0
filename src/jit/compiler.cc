// The entry of the shared object: IR, a few passes, machine code, a blob.

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <atomic>
#include <mutex>
#include <new>

#include "base/knobs.h"
#include "jit/loop_writer.h"
#include "jit/memory.h"
#include "jit/object.h"

namespace treadle::jit {

namespace {

// The instruction set from which kernels were picked, so that native code rounds as they do.
std::pair<std::string, std::string> processor(Isa isa) {
  switch (isa) {
    case Isa::kBaseline:
      return {"x86-64", ""};
    case Isa::kAvx2:
      return {"haswell", ""};
    case Isa::kAvx512: {
      std::string features;
      for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
        if (!features.empty()) features += ',';
        features += (feature.second ? "+" : "-") + feature.first().str();
      }
      return {llvm::sys::getHostCPUName().str(), features};
    }
  }
  return {};
}

std::unique_ptr<llvm::TargetMachine> make_target(Isa isa, std::string& why) {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  static_cast<void>(initialized);
  const std::string triple = llvm::sys::getProcessTriple();
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, why);
  if (!target) return nullptr;
  const auto [cpu, features] = processor(isa);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // The passes that the next level adds take a third of the compile time and make no loop faster.
  constexpr auto kLevel = llvm::CodeGenOptLevel::Less;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, kLevel));
}

// `unrolls`: some loops are marked for unrolling.
void simplify(llvm::Module& module, llvm::TargetMachine& target, bool unrolls) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&target);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  passes.addPass(llvm::EarlyCSEPass());
  if (unrolls) passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2, /*OnlyWhenForced=*/true)));
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

void set_attributes(llvm::Function& function, const llvm::TargetMachine& target) {
  function.addFnAttr("target-cpu", target.getTargetCPU());
  function.addFnAttr("target-features", target.getTargetFeatureString());
  function.addFnAttr("prefer-vector-width", "512");
  function.addFnAttr("min-legal-vector-width", "512");
}

// LLVM calls these instead of ending the process.
[[noreturn]] void no_memory(void* /*data*/, const char* /*reason*/, bool /*generate_diagnostics*/) {
  break_off("there is no memory to compile it");
}
[[noreturn]] void cannot_go_on(void* /*data*/, const char* reason, bool /*generate_diagnostics*/) {
  break_off(reason);
}

// LLVM's objects for one loop.
struct Work {
  std::unique_ptr<llvm::TargetMachine> target;
  llvm::LLVMContext context;
  llvm::Module module{"treadle", context};
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out{object};
  llvm::legacy::PassManager codegen;
};

bool compile(const plan::NativeRequest& request, plan::NativeBlob& blob, std::string& why, Work& work) {
  work.target = make_target(request.isa, why);
  if (!work.target) return false;
  llvm::TargetMachine& target = *work.target;
  work.module.setTargetTriple(target.getTargetTriple().str());
  work.module.setDataLayout(target.createDataLayout());
  LoopWriter writer(request, work.module);
  writer.write();
  for (llvm::Function& each : work.module) {
    if (!each.isDeclaration()) set_attributes(each, target);
  }
  const char* dump = environment("TREADLE_JIT_DUMP");
  if (dump && *dump == '1') work.module.print(llvm::errs(), nullptr);
#ifndef NDEBUG
  llvm::raw_string_ostream problems(why);
  if (llvm::verifyModule(work.module, &problems)) return false;
#endif
  simplify(work.module, target, writer.unrolls());
  if (dump && *dump == '2') work.module.print(llvm::errs(), nullptr);
  if (target.addPassesToEmitFile(work.codegen, work.out, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    why = "no object files for this target";
    return false;
  }
  work.codegen.run(work.module);
  if (!link_object(llvm::StringRef(work.object.data(), work.object.size()), "loop", blob, why)) return false;
  blob.refs = writer.take_refs();
  return true;
}

// The result of a request.
struct Answer {
  plan::NativeBlob blob;
  std::string why;
  bool compiled = false;
};

struct Call {
  const plan::NativeRequest& request;
  std::unique_ptr<Answer> answer;
};

void answer(void* data) {
  static const bool guarded = [] {
    llvm::install_bad_alloc_error_handler(no_memory);
    llvm::install_fatal_error_handler(cannot_go_on);
    return true;
  }();
  static_cast<void>(guarded);
  auto* call = static_cast<Call*>(data);
  auto made = std::make_unique<Answer>();
  const auto work = std::make_unique<Work>();
  made->compiled = compile(call->request, made->blob, made->why, *work);
  call->answer = std::move(made);
}

bool compile(const plan::NativeRequest& request, plan::NativeBlob& blob, std::string& why) {
  use_thread_locals();
  // The first compilation sets up LLVM's global data, so only one thread may make it.
  static std::mutex first;
  static std::atomic<bool> is_set_up = false;
  std::unique_lock alone(first, std::defer_lock);
  if (!is_set_up) alone.lock();
  try {
    if (const char* before = broken_off_for()) {
      why = std::string("the compiler broke off before, and is not used again: ") + before;
      return false;
    }
    Call call{request, nullptr};
    if (!run_guarded(answer, &call)) {
      why = broken_off_for();
      return false;
    }
    is_set_up = true;
    blob = std::move(call.answer->blob);
    why = std::move(call.answer->why);
    return call.answer->compiled;
  } catch (const std::bad_alloc&) {
    why = "no memory";  // short enough to need no memory
    return false;
  }
}

}  // namespace

}  // namespace treadle::jit

extern "C" [[gnu::visibility("default")]] const treadle::plan::NativeCompiler* treadle_native_compiler() {
  treadle::jit::loaded();
  static const treadle::plan::NativeCompiler compiler{treadle::plan::native_version(), treadle::jit::compile};
  return &compiler;
}
