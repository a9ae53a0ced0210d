"""The operations of a step on a CPU, in C: an optional library, called through ctypes.

`native_kernels` loads it, or says why not; then every caller keeps to torch. `NativeKernels` has the small operations,
`NativeProduct` and `Int8Product` multiply rows with weights, `NativeLayers` computes whole decoder layers in one call
(decision 0089). They pack arguments; the C behind them divides the work among the threads of torch's OpenMP. Each
operation is written once, in a header, in terms of a vector, and compiled for each instruction set with the vector of
that set; the CPU chooses at run time.
"""
