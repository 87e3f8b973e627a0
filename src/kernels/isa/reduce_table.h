#pragma once
namespace treadle::kernels {
struct ReduceTable {};
}  // namespace treadle::kernels
