"""Features of Warp that this engine does not have, recognised by name."""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib.machinery import ModuleSpec

from engine.itself import ENGINE
from engine.lang.stand_ins import FormerModule, StandIn, StandInModule, make_stand_in, plural

__all__ = [
    "FEATURES",
    "Finder",
    "Loader",
    "is_missing_module",
    "missing_feature",
    "plural",
    "stand_in",
]

# (names, or patterns with "*"; the feature; what to write instead).
FEATURES: tuple[tuple[str, str, str], ...] = (
    # ---- in kernels
    ("tile_*", "tiles",
     "loop over the elements with one thread for each result"),
    ("Volume* volume_*", "volumes", "pass the grid as a 3-D array and interpolate by hand"),
    ("Texture* texture_* GLTextureResource", "textures",
     "pass the image as an array and interpolate by hand"),
    ("spatial_mass spatial_jacobian", "matrices of whole mechanisms",
     "loop over the joints and add up `spatial_adjoint(...)` products"),
    ("dense_*", "dense solvers in kernels", "use numpy.linalg on the host"),
    ("fabricarray* indexedfabricarray*", "arrays of the Fabric",
     "pass an ordinary array"),
    ("array_store array_load address_of", "addresses", "index the array: `a[i]`"),
    ("tile_dim", "thread blocks", "use `tid()`: every thread works alone"),
    ("breakpoint", "breakpoints in kernels", "print values with `printf`"),
    # ---- outside kernels
    ("capture_save capture_load capture_load_from_bytes capture_debug_dot_print",
     "files of captured graphs", "capture the sequence again in the process that runs it"),
    ("event_from_ipc_handle", "events of other processes",
     "leave it out: launches run in the order of their calls"),
    ("Allocator CudaManagedAllocator get_device_allocator ScopedMemoryTracker "
     "print_memory_report get_cuda_kernel_properties", "memory pools and allocators",
     "leave the call out"),
    ("from_ipc_handle", "these makers of arrays",
     "make a NumPy array of it: `from_numpy(a)`"),
    ("RegisteredGLBuffer", "buffers of OpenGL",
     "copy the array by `numpy()`"),
    ("*_aot_module ModuleBuildOptions", "modules compiled ahead",
     "leave the call out: kernels are compiled when they are first launched, and kept"),
    ("clear_lto_cache get_cpu_kernel_cache_key", "functions of the cache",
     "call `clear_kernel_cache()`"),
    ("sim", "simulation models (`sim`)", "write the model as kernels"),
    ("fem", "finite elements (`fem`)", "write the assembly as kernels"),
    ("render", "renderers (`render`)", "draw `array.numpy()` with another package"),
    ("sparse", "sparse matrices (`sparse`)", "use scipy.sparse on `array.numpy()`"),
    ("examples tests geometry", "parts of Warp's own package", "install `warp-lang` for them"),
    ("context build", "internals of Warp", "use the public names of `engine`"),
)  # fmt: skip


_EXACT = {n: row[1:] for row in FEATURES for n in row[0].split() if "*" not in n}
_PATTERNS = [(n, row[1:]) for row in FEATURES for n in row[0].split() if "*" in n]


def missing_feature(name: str) -> tuple[str, str] | None:
    """The feature that a name of Warp belongs to, with what to write instead."""
    if name in _EXACT:
        return _EXACT[name]
    return next((found for p, found in _PATTERNS if fnmatchcase(name, p)), None)


# What are modules: `import engine.fem` gives a stand-in, too.
_MODULES = frozenset(
    [
        "sim",
        "fem",
        "render",
        "sparse",
        "examples",
        "tests",
        "geometry",
        "context",
        "build",
    ]
)

# Those whose names are the engine's own today, as far as it has them.
_FORMER = frozenset(["context", "build"])


def stand_in(name: str) -> StandIn | None:
    """What `engine.NAME` is for a feature of Warp that is not here; None for other names."""
    found = None if name.startswith("_") else missing_feature(name)
    return None if found is None else make_stand_in(name, *found)


class Finder:
    """The last finder of imports: stand-ins for modules of Warp that are not here.

    `import engine.fem` comes here, and `import engine.fem.linalg`. Other modules are none of its
    business.
    """

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        package, name, *_ = [*fullname.split("."), ""]
        if package != "engine" or name not in _MODULES or not _is_ours(path):
            return None
        return ModuleSpec(fullname, Loader, is_package=True)  # type: ignore[arg-type]


def _is_ours(path: object) -> bool:
    """Whether a package's folders are those of the engine, or of a stand-in, which has none."""
    return path is None or list(path) in ([], list(ENGINE.__path__))  # type: ignore[call-overload]


class Loader:
    """Makes the modules that `Finder` finds."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> StandInModule:
        name = spec.name.split(".")[1]
        found = missing_feature(name)
        assert found is not None
        make = FormerModule if name in _FORMER else StandInModule
        return make(spec.name, *found)

    @staticmethod
    def exec_module(module: object) -> None:
        pass


def is_missing_module(name: str) -> bool:
    """Whether `engine.NAME` is a module of Warp that is not here."""
    return name in _MODULES and missing_feature(name) is not None
