#!/usr/bin/env python3
"""Checks that a profile counts the kernels of src/cuda/sample as sampling.

step_profile.cc finds a kernel's kind by parts of its name. Every kernel of src/cuda/sample must
have the kind kSampling, and every part with this kind must be in the name of such a kernel.
"""

import re
import sys
from pathlib import Path

PART = re.compile(r'\{"([^"]+)", WorkKind::(\w+)\}')
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\(")


def kind_of(kernel: str, parts: list[tuple[str, str]]) -> str:
    return next((kind for part, kind in parts if part in kernel), "kRest")


def main() -> int:
    cuda = Path(sys.argv[1]) / "src/cuda"
    parts = PART.findall((cuda / "profile/step_profile.cc").read_text())
    kernels = []
    faults = []
    for path in sorted((cuda / "sample").glob("*.cu*")):
        text = path.read_text()
        found = KERNEL.findall(text)
        kernels += found
        if len(found) != text.count("__global__"):
            faults.append(f"{path.name} has a kernel whose name this test cannot read")
    for kernel in kernels:
        if kind_of(kernel, parts) != "kSampling":
            faults.append(f"step_profile.cc gives {kernel} the kind {kind_of(kernel, parts)}, "
                          f"expected kSampling")
    for part, kind in parts:
        if kind == "kSampling" and not any(part in kernel for kernel in kernels):
            faults.append(f"step_profile.cc names {part}, but src/cuda/sample has no such kernel")
    if len(kernels) < 5 or not parts:
        faults.append(f"found {len(kernels)} kernels and {len(parts)} parts of names")
    print("\n".join(faults) or f"{len(kernels)} kernels count as sampling")
    return 1 if faults else 0


sys.exit(main())
