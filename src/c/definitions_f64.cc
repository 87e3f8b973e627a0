#include "c/evaluate.h"

namespace treadle::c {

template Definition definition<double>(kernels::ElementwiseOp op, bool evaluates);

}  // namespace treadle::c
