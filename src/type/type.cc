#include "type/type.h"

namespace treadle {

std::string Type::to_string() const {
  switch (kind) {
    case Kind::kUnknown:
      return "unknown";
    case Kind::kTensor:
    case Kind::kSparseTensor: {
      std::string text = kind == Kind::kTensor ? "tensor(" : "sparse_tensor(";
      text += std::string(name(element)) + ")";
      return has_shape ? text + treadle::to_string(shape) : text;
    }
    case Kind::kSequence:
      return "seq(" + child->to_string() + ")";
    case Kind::kOptional:
      return "optional(" + child->to_string() + ")";
    case Kind::kMap:
      return "map(" + std::string(name(element)) + "," + child->to_string() + ")";
  }
  return "unknown";
}

bool same_structure(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.element != b.element) return false;
  if (!a.child || !b.child) return !a.child == !b.child;
  return same_structure(*a.child, *b.child);
}

bool identical(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.element != b.element || a.has_shape != b.has_shape) return false;
  if (a.has_shape && !identical(a.shape, b.shape)) return false;
  if (!a.child || !b.child) return !a.child == !b.child;
  return identical(*a.child, *b.child);
}

namespace {

Status mismatch(const Type& a, const Type& b) {
  return error(Code::kInvalidModel, "types {} and {} do not agree", a.to_string(), b.to_string());
}

bool more_precise(const Dim& a, const Dim& b) {
  if (a.is_known()) return !b.is_known();
  return b.is_unknown() && (a.is_symbolic() || a.lower_bound() > b.lower_bound());
}

}  // namespace

Result<Type> merge(const Type& declared, const Type& inferred) {
  if (!declared.is_known()) return inferred;
  if (!inferred.is_known()) return declared;
  if (declared.kind != inferred.kind) return mismatch(declared, inferred);
  Type out = declared;
  if (declared.element == ElementType::kUndefined) {
    out.element = inferred.element;
  } else if (inferred.element != ElementType::kUndefined && inferred.element != declared.element) {
    return mismatch(declared, inferred);
  }
  if (declared.child && inferred.child) {
    TREADLE_ASSIGN(Type child, merge(*declared.child, *inferred.child));
    out.child = std::make_shared<const Type>(std::move(child));
  } else if (inferred.child) {
    out.child = inferred.child;
  }
  if (!inferred.has_shape) return out;
  if (!declared.has_shape) {
    out.has_shape = true;
    out.shape = inferred.shape;
    return out;
  }
  if (declared.shape.size() != inferred.shape.size()) return mismatch(declared, inferred);
  for (size_t i = 0; i < out.shape.size(); ++i) {
    const Dim& d = inferred.shape[i];
    if (out.shape[i].is_known() && d.is_known() && out.shape[i].value() != d.value())
      return mismatch(declared, inferred);
    if (more_precise(d, out.shape[i])) out.shape[i] = d;
  }
  return out;
}

Result<Type> unite(const Type& a, const Type& b) {
  if (!a.is_known()) return b;
  if (!b.is_known()) return a;
  if (a.kind != b.kind || a.element != b.element) return mismatch(a, b);
  Type out = a;
  if (a.child && b.child) {
    TREADLE_ASSIGN(Type child, unite(*a.child, *b.child));
    out.child = std::make_shared<const Type>(std::move(child));
  }
  if (a.has_shape && b.has_shape && a.shape.size() == b.shape.size()) {
    for (size_t i = 0; i < out.shape.size(); ++i) {
      if (!same(a.shape[i], b.shape[i])) out.shape[i] = Dim::unknown();
    }
  } else {
    out.has_shape = false;
    out.shape.clear();
  }
  return out;
}

}  // namespace treadle
