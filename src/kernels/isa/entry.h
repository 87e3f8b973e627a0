#pragma once
// The prepare functions of the matrix, convolution and pooling kernels, once per instruction set.

#include "kernels/conv.h"
#include "kernels/gemm.h"
#include "kernels/pool.h"
#include "kernels/qgemm.h"

#define TREADLE_DECLARE_MATRIX_KERNELS(isa)                                                                            \
  namespace treadle::kernels::isa {                                                                                    \
  GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape);                                                     \
  ConvPlan prepare_conv(ComputeType type, const ConvShape& shape);                                                     \
  ConvLayouts conv_layouts(ComputeType type, const ConvShape& shape);                                                  \
  void run_pool_last(PoolKind kind, const PoolShape& shape, const float* x, float* y, int64_t begin, int64_t end);     \
  void run_global_average_last(int64_t plane, int64_t channels, const float* x, float* y, int64_t begin, int64_t end); \
  QGemmPlan prepare_qgemm(const QGemmShape& shape);                                                                    \
  QConvPlan prepare_qconv(const QConvShape& shape);                                                                    \
  void run_pool(PoolKind kind, ElementType type, const PoolShape& shape, const void* x, void* y, int64_t* indices,     \
                int64_t begin, int64_t end);                                                                           \
  void run_global_pool(PoolKind kind, ElementType type, int p, int64_t plane, const void* x, void* y, int64_t begin,   \
                       int64_t end);                                                                                   \
  }

TREADLE_DECLARE_MATRIX_KERNELS(baseline)
#if defined(TREADLE_HAS_X86_KERNELS)
TREADLE_DECLARE_MATRIX_KERNELS(avx2)
TREADLE_DECLARE_MATRIX_KERNELS(avx512)
#endif
