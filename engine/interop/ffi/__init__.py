"""Kernels inside JAX programs, by its foreign function interface (FFI).

Low to high:

```
library     the handler that XLA calls, compiled against its headers; what it calls in Python
program     what one such call runs: forms of a kernel, and where its arguments are among buffers
operation   a kernel with fixed shapes as JAX sees it, with its derivatives of any order
primitive   that as a JAX primitive: forward and reverse mode, batching, lowering
signature   arguments of a call checked against the parameters of a kernel or function
kernels     `jax_kernel`      callables   `jax_callable`      callbacks   `register_ffi_callback`
```
"""
