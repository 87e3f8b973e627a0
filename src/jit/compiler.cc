// The entry of the shared object: IR, a few passes, machine code, a blob.

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <cstdlib>

#include "jit/loop_writer.h"
#include "jit/object.h"

namespace treadle::jit {

namespace {

// The instruction set that kernels were picked from, so that both round alike.
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
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

void simplify(llvm::Function& function, llvm::TargetMachine& target) {
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
  passes.run(function, functions);
}

void set_attributes(llvm::Function& function, const llvm::TargetMachine& target) {
  function.addFnAttr("target-cpu", target.getTargetCPU());
  function.addFnAttr("target-features", target.getTargetFeatureString());
  function.addFnAttr("prefer-vector-width", "512");
  function.addFnAttr("min-legal-vector-width", "512");
}

bool compile(const plan::NativeRequest& request, plan::NativeBlob& blob, std::string& why) {
  auto target = make_target(request.isa, why);
  if (!target) return false;
  llvm::LLVMContext context;
  llvm::Module module("treadle", context);
  module.setTargetTriple(target->getTargetTriple().str());
  module.setDataLayout(target->createDataLayout());
  LoopWriter writer(request, module);
  llvm::Function* function = writer.write();
  set_attributes(*function, *target);
  const char* dump = std::getenv("TREADLE_JIT_DUMP");
  if (dump && *dump == '1') function->print(llvm::errs());
#ifndef NDEBUG
  llvm::raw_string_ostream problems(why);
  if (llvm::verifyFunction(*function, &problems)) return false;
#endif
  simplify(*function, *target);
  if (dump && *dump == '2') function->print(llvm::errs());
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  llvm::legacy::PassManager codegen;
  if (target->addPassesToEmitFile(codegen, out, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    why = "no object files for this target";
    return false;
  }
  codegen.run(module);
  if (!link_object(llvm::StringRef(object.data(), object.size()), "loop", blob, why)) return false;
  blob.refs = writer.take_refs();
  return true;
}

constexpr plan::NativeCompiler kCompiler{plan::kNativeVersion, compile};

}  // namespace

}  // namespace treadle::jit

extern "C" [[gnu::visibility("default")]] const treadle::plan::NativeCompiler* treadle_native_compiler() {
  return &treadle::jit::kCompiler;
}
