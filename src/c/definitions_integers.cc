#include "c/evaluate.h"

namespace treadle::c {

template Definition definition<int32_t>(kernels::ElementwiseOp op, bool evaluates);
template Definition definition<uint32_t>(kernels::ElementwiseOp op, bool evaluates);
template Definition definition<int64_t>(kernels::ElementwiseOp op, bool evaluates);
template Definition definition<uint64_t>(kernels::ElementwiseOp op, bool evaluates);
template Definition definition<uint8_t>(kernels::ElementwiseOp op, bool evaluates);

}  // namespace treadle::c
