#include "c/evaluate.h"

namespace treadle::c {

template Definition definition<float>(kernels::ElementwiseOp op, bool evaluates);

}  // namespace treadle::c
