"""The small operations of a step on a CPU, in C: an optional library, called through ctypes.

`native_kernels` loads it, or says why not; then every caller keeps to torch. `kernels.c` is what Python calls. It
divides work among the threads of torch's OpenMP. The operations are written once (`small_operations.h`, `attention.h`)
in terms of a vector, and compiled for each instruction set (`vector_*.h`); the CPU chooses at run time.
"""
