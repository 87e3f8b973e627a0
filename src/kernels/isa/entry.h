#pragma once
// The prepare functions of the matrix, convolution and pooling kernels, once per instruction set.

#include <string_view>
#include <vector>

#include "kernels/conv.h"
#include "kernels/conv_costs.h"
#include "kernels/gemm.h"
#include "kernels/isa/each.h"
#include "kernels/pool.h"
#include "kernels/qgemm.h"

namespace treadle::kernels {

// `wanted`: the walk to take wherever it fits.
TREADLE_IN_EACH_ISA(GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted = {});)
TREADLE_IN_EACH_ISA(std::vector<std::string_view> gemm_walks();)
TREADLE_IN_EACH_ISA(ConvPlan prepare_conv(ComputeType type, const ConvShape& shape, std::string_view wanted);)
TREADLE_IN_EACH_ISA(ConvLayouts conv_layouts(ComputeType type, const ConvShape& shape, std::string_view wanted);)
TREADLE_IN_EACH_ISA(std::vector<ConvCost> conv_costs(ComputeType type, const ConvShape& shape);)
// Names of methods. conv_methods() lists methods of bytes last.
TREADLE_IN_EACH_ISA(std::vector<std::string_view> conv_methods();)
TREADLE_IN_EACH_ISA(std::vector<std::string_view> byte_conv_methods();)
TREADLE_IN_EACH_ISA(void run_pool_nhwc(PoolKind kind, const PoolShape& shape, const float* x, float* y, int64_t begin,
                                       int64_t end);)
TREADLE_IN_EACH_ISA(void run_global_average_nhwc(int64_t plane, int64_t channels, const float* x, float* y,
                                                 int64_t begin, int64_t end);)
TREADLE_IN_EACH_ISA(QGemmPlan prepare_qgemm(const QGemmShape& shape);)
TREADLE_IN_EACH_ISA(QConvPlan prepare_qconv(const QConvShape& shape, std::string_view wanted);)
TREADLE_IN_EACH_ISA(void run_pool(PoolKind kind, ElementType type, const PoolShape& shape, const void* x, void* y,
                                  int64_t* indices, int64_t begin, int64_t end);)
TREADLE_IN_EACH_ISA(void run_global_pool(PoolKind kind, ElementType type, int p, int64_t plane, const void* x, void* y,
                                         int64_t begin, int64_t end);)

}  // namespace treadle::kernels
