"""The small operations of a step on a CPU, in C: an optional library, called through ctypes.

`native_kernels` loads it, or says why not; then every caller keeps to torch. `NativeKernels` packs arguments; the C
behind it divides the work among the threads of torch's OpenMP. Each operation is written once, in a header, in terms of
a vector, and compiled for each instruction set with the vector of that set; the CPU chooses at run time.
"""
