#!/usr/bin/env python3
"""Writes what native_version() of src/plan/native.h returns: a digest of the sources that decide what native code looks
like and what it finds.

    gen_native_version.py --source DIR --llvm 19.1.7 --out build/generated/native_version.cc

These are the compiler itself (src/jit) and the headers that it and the engine share. The output is touched only when its
text changes.
"""

import argparse
import hashlib
import pathlib

HEADERS = ("base", "type", "kernels", "op", "plan")


def sources(root: pathlib.Path) -> list[pathlib.Path]:
    found = list((root / "src" / "jit").glob("*.*"))
    for folder in HEADERS:
        found += (root / "src" / folder).glob("*.h")
    return sorted(found)


def version(root: pathlib.Path, llvm: str) -> str:
    digest = hashlib.blake2b(llvm.encode(), digest_size=8)
    for path in sources(root):
        content = path.read_bytes()
        digest.update(f"\0{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--llvm", required=True, help="LLVM's version, or nothing")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    args = parser.parse_args()
    text = f"""#include "plan/native.h"

namespace treadle::plan {{

uint64_t native_version() {{
  return 0x{version(args.source, args.llvm)};
}}

}}  // namespace treadle::plan
"""
    if not args.out.exists() or args.out.read_text(encoding="utf-8") != text:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
