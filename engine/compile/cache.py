"""The store of compiled kernels: a private folder that many processes use at once.

    objects/HASH.so    shared objects, named by the hash of their own content
    index/KEY.json     for each kernel: its object and entry point
    kernels/KEY.json   for each kernel as its user wrote it: its key in the index, and what
                       launches need to know of it (see `remembered`)
    notes/KEY.json     words of compilers about themselves
    headers/KEY.h.gch  what the compiler parsed of headers (see `cpu.precompiled`)
    failed/KEY.log     what the compiler said when it failed
    tmp/               builds under way; locks/: who builds what

Files appear whole (written elsewhere, then renamed), so a reader sees all or nothing;
an object is checked against its name before it is loaded. What does not fit is treated
as missing, and built again; so is what other users may have written, of which the user is told.
All reading is by `engine.private`, which says what is trusted. docs/cache.md says it to users.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import stat
import time
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, TypeVar

from engine import config
from engine.classes import dataclass
from engine.diagnostics import CompilerError, Diagnostic
from engine.forks import no_fork
from engine.hashing import hashed
from engine.private import Untrusted, opened, own_folder, private_folder, read_own

try:
    import fcntl
except ImportError:  # no locks there: work may be done twice
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# `pathlib`, `shutil` and `tempfile` are imported late: what only loads kernels needs none of them.

T = TypeVar("T")

_SCHEMA = 1
_FOLDERS = ("objects", "index", "kernels", "notes", "headers", "failed", "tmp", "locks")
_KERNELS = 5_000  # that are remembered: the texts of programs change more often than their code
_HEADERS = 4  # that are kept, of 5 MB each: by compiler and by version of the engine
# The most bytes that a file of each folder may have to be read.
LIMITS = {"index": 1 << 20, "notes": 1 << 20, "kernels": 1 << 26, "objects": 1 << 29,
          "headers": 1 << 29, "locks": 0}  # fmt: skip
_STALE = 3600.0  # seconds after which a build's leftovers are of nobody


@dataclass(frozen=True)
class Stored:
    """A kernel in the cache: its object file and the name of its entry point."""

    path: str
    symbol: str


class Cache:
    """The cache in one folder. Every method may run in many processes at once.

    root: a folder that `private_folder` trusts. problem: why this is not the folder that was asked
    for, and what to do; empty where it is.
    Raises OSError where folders in it cannot be made, or are not the user's own.
    """

    def __init__(self, root: str, problem: tuple[str, str] = ("", "")) -> None:
        self.folder = root
        self.problem = problem
        for name in _FOLDERS:
            path = f"{root}/{name}"
            try:
                own_folder(path)
            except FileNotFoundError:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(path, 0o700)
                own_folder(path)

    def read(self, path: str, touch: bool = False) -> bytes:
        """What a file of the cache holds. Raises OSError where it is not there or not trusted.

        touch: whether it is used, for `trim`.
        """
        try:
            return read_own(path, LIMITS[os.path.basename(os.path.dirname(path))], touch)
        except Untrusted as e:
            self.tell(e)
            raise

    def tell(self, e: Untrusted) -> None:
        """Tells the user of the first file that is not loaded."""
        if self.folder not in _told:
            _told.add(self.folder)
            what = f"{e.path} in the kernel cache {e.why}"
            said = f"{what}: such files are not loaded, and their kernels are compiled again"
            _warn(said, f"if others could write there, {_delete(self.folder)}")

    @property
    def root(self) -> Path:
        """The folder."""
        from pathlib import Path

        return Path(self.folder)

    def find(self, key: str, loaded: Container[str] = ()) -> Stored | None:
        """The kernel of a key, with its object checked; None where it must be built.

        loaded: the paths of objects that the process has loaded, so that it has looked at them.
        """
        try:
            said = json.loads(self.read(f"{self.folder}/index/{key}.json").decode())
            if said["schema"] != _SCHEMA:
                return None
            digest, symbol = said["object"], said["symbol"]
            if not (isinstance(symbol, str) and isinstance(digest, str) and digest.isalnum()):
                return None
            path = f"{self.folder}/objects/{digest}.so"
            if path in loaded:
                return Stored(path, symbol)
            data = self.read(path, touch=True)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        if hashed(data).hexdigest() != digest:
            self.discard(path)
            return None
        return Stored(path, symbol)

    def add(self, built: Path, symbols: dict[str, str]) -> None:
        """Takes a shared object (which is moved) and the entry point of each key in it."""
        digest = hashed(built.read_bytes()).hexdigest()
        os.chmod(built, 0o700)
        _replace(built, self.root / "objects" / f"{digest}.so")
        for key, symbol in symbols.items():
            said = {"schema": _SCHEMA, "object": digest, "symbol": symbol}
            self._write("index", f"{key}.json", json.dumps(said))

    def discard(self, path: str | Path) -> None:
        """Removes an object that cannot be used."""
        with contextlib.suppress(OSError):
            os.unlink(path)

    def remember(self, key: str, text: str) -> None:
        """Keeps what is known of a kernel. Raises OSError where that cannot be."""
        digest = hashed(text.encode()).hexdigest()
        self._write("kernels", f"{key}.json", f"{_SCHEMA} {key} {digest}\n{text}")

    def remembered(self, key: str) -> str | None:
        """What was kept of a kernel; None where there is nothing, or it is damaged."""
        path = f"{self.folder}/kernels/{key}.json"
        try:
            head, _, text = self.read(path, touch=True).partition(b"\n")
            digest = hashed(text).hexdigest()
            if head.decode() != f"{_SCHEMA} {key} {digest}":
                return None
            return text.decode()
        except (OSError, ValueError):
            return None

    def note(self, key: str, words: str) -> None:
        """Keeps some words. Raises OSError where that cannot be."""
        self._write("notes", f"{key}.json", json.dumps([_SCHEMA, key, words]))

    def noted(self, key: str) -> str | None:
        """The words that were kept; None where there are none, or what is there is damaged."""
        try:
            said = json.loads(self.read(f"{self.folder}/notes/{key}.json").decode())
        except (OSError, ValueError, RecursionError):
            return None
        whole = isinstance(said, list) and said[:2] == [_SCHEMA, key] and len(said) == 3
        return said[2] if whole and isinstance(said[2], str) else None

    def log(self, key: str, text: str) -> Path:
        """Keeps what a failed compiler run said. Returns the file."""
        name = f"{key[:24]}.log"
        self._write("failed", name, text)
        return self.root / "failed" / name

    def _write(self, folder: str, file: str, text: str) -> None:
        import tempfile

        if len(text) > LIMITS.get(folder, len(text)):
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), file)
        with no_fork:  # `tempfile` has a lock
            handle, name = tempfile.mkstemp(dir=self.root / "tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as f:
                f.write(text)
            _replace(name, f"{self.folder}/{folder}/{file}")
        except BaseException:
            os.unlink(name)
            raise

    @contextlib.contextmanager
    def workspace(self) -> Iterator[Path]:
        """A folder for one build, removed afterwards."""
        import shutil
        import tempfile
        from pathlib import Path

        with no_fork:
            path = Path(tempfile.mkdtemp(dir=self.root / "tmp"))
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    @contextlib.contextmanager
    def lock(self, key: str, timeout: float) -> Iterator[None]:
        """Lets one process at a time build the same thing.

        It only saves work: where locks do not work, or after `timeout` seconds, all go on.
        """
        path = f"{self.folder}/locks/{key[:24]}"
        try:
            handle, _ = opened(path, LIMITS["locks"], os.O_RDWR | os.O_CREAT)
        except OSError as e:
            if isinstance(e, Untrusted):
                self.tell(e)
                self.discard(path)
            yield
            return
        try:
            end = time.monotonic() + timeout
            while fcntl is not None and time.monotonic() < end:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.01)
                except OSError:
                    break
            yield
        finally:
            # Not by closing alone: a process forked meanwhile has the file open, too.
            if fcntl is not None:
                with contextlib.suppress(OSError):
                    fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)

    def clear(self) -> None:
        """Removes all kernels. What processes have loaded stays with them."""
        for folder in ("kernels", "index", "objects", "notes", "headers", "failed"):
            for path, _ in files_of(self.root / folder):
                self.discard(path)

    def trim(self) -> None:
        """Removes leftovers of builds that died, and the objects used longest ago."""
        import shutil

        now = time.time()
        for folder, most in (("kernels", _KERNELS), ("headers", _HEADERS)):
            found = [x for x in files_of(self.root / folder) if x[0].suffix != ".h"]
            for path, _ in sorted(found, key=lambda item: item[1].st_mtime)[:-most]:
                self.discard(path)
        for folder in ("tmp", "locks"):
            for path, info in files_of(self.root / folder):
                if now - info.st_mtime > _STALE:
                    if stat.S_ISDIR(info.st_mode):
                        shutil.rmtree(path, ignore_errors=True)
                    else:
                        self.discard(path)
        if config.cache_limit_bytes <= 0:
            return
        objects = sorted(files_of(self.root / "objects"), key=lambda item: item[1].st_mtime)
        total = sum(info.st_size for _, info in objects)
        if total <= config.cache_limit_bytes:
            return
        gone = set()
        for path, info in objects:
            if total <= config.cache_limit_bytes * 3 // 4:
                break
            self.discard(path)
            gone.add(path.stem)
            total -= info.st_size
        for path, _ in files_of(self.root / "index"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                if json.loads(self.read(str(path)))["object"] in gone:
                    path.unlink()
        for path, _ in files_of(self.root / "kernels"):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                code = json.loads(self.read(str(path)).partition(b"\n")[2])["form"]["code"]
                if not (self.root / "index" / f"{code}.json").exists():
                    path.unlink()


def _replace(made: str | Path, path: str | Path) -> None:
    """Puts a file in its place, also where somebody has put a folder there."""
    try:
        os.replace(made, path)
    except OSError:
        if not os.path.isdir(path) or os.path.islink(path):
            raise
        import shutil

        shutil.rmtree(path)
        os.replace(made, path)


def files_of(folder: Path) -> list[tuple[Path, os.stat_result]]:
    out = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            with contextlib.suppress(OSError):
                out.append((path, path.lstat()))
    return out


def chosen_root() -> Path | None:
    """The folder that the present settings name; None where there is no home to have it in."""
    chosen = os.environ.get("ENGINE_CACHE_DIR") or config.cache_dir or config.kernel_cache_dir
    from pathlib import Path

    try:
        return Path(_root(str(chosen) if chosen else "", os.environ.get("XDG_CACHE_HOME", "")))
    except (OSError, RuntimeError):
        return None


def _root(chosen: str, xdg: str) -> str:
    """Raises RuntimeError where there is no home."""
    found = chosen or os.path.join(xdg if os.path.isabs(xdg) else "~/.cache", "adtool", "kernels")
    found = os.path.expanduser(found)
    if found.startswith("~"):
        raise RuntimeError("there is no home")
    return os.path.join(os.getcwd(), found)


def open_cache() -> Cache:
    """The cache under the present settings; a folder of this process where none can be used.

    That is one that cannot be made or written, and one that other users could write, of which the
    user is warned. Raises CompilerError (E303) where no folder of this process is private, either.
    """
    settings = _settings()
    return _instead.get((os.getpid(), settings)) or _open(*settings)


def _settings() -> tuple[str, str]:
    chosen = os.environ.get("ENGINE_CACHE_DIR") or config.cache_dir or config.kernel_cache_dir
    return str(chosen) if chosen else "", os.environ.get("XDG_CACHE_HOME", "")


# Caches in the place of those that could not be written any more, by process and settings.
_instead: dict[tuple[int, tuple[str, str]], Cache] = {}


def in_cache(work: Callable[[Cache], T]) -> T:
    """Does what reads and writes the cache.

    Where its folder was removed, it does so again in a new one, and where it cannot be written, in
    a folder of this process. Raises CompilerError: E303, and E302 where that is no better.
    """
    with contextlib.suppress(OSError):
        return work(open_cache())
    _open.cache_clear()
    with contextlib.suppress(OSError):
        return work(open_cache())
    try:
        cache = _instead[os.getpid(), _settings()] = _temporary(_unwritable())
        return work(cache)
    except OSError as e:
        said = e.strerror or str(e)
        help = "free disk space, or set ENGINE_CACHE_DIR to a writable folder"
        problem = f"compiled kernels cannot be written: {said}"
        raise CompilerError(Diagnostic("E302", problem, help=help)) from None


def clear_kernel_cache() -> None:
    """Removes all compiled kernels from the cache folder; they are compiled again when needed.

    Kernels that this process has launched already stay loaded. A folder that other users could
    write is left as it is: it is not used.
    """
    open_cache().clear()


@functools.lru_cache(maxsize=8)
def _open(chosen: str, xdg: str) -> Cache:
    root = chosen
    try:
        root = _root(chosen, xdg)
        cache = Cache(private_folder(root, make=True))
        probe = f"{cache.folder}/tmp/{os.urandom(8).hex()}"
        os.mkdir(probe, 0o700)
        os.rmdir(probe)
    except Untrusted as e:
        problem = _not_private(root, e)
        _warn(*problem)
        return _temporary(problem)
    except (OSError, RuntimeError):
        return _temporary(_unwritable())
    return cache


def _unwritable() -> tuple[str, str]:
    return (
        f"{chosen_root() or 'the cache folder'} "
        "cannot be written: every run "
        "compiles kernels again", "set ENGINE_CACHE_DIR to a writable folder",
    )  # fmt: skip


def _not_private(root: str, e: Untrusted) -> tuple[str, str]:
    """What is said of a folder that other users could write, as loading a kernel runs it."""
    problem = (
        f"the kernel cache {root} is not used, because {'it' if e.path == root else e.path} "
        f"{e.why}: every run compiles kernels again"
    )
    if f"{e.path}/".startswith(os.path.join(os.path.realpath(root), "")):
        help = f"{_delete(root)}, or set ENGINE_CACHE_DIR to your own folder"
    else:
        help = (
            "set ENGINE_CACHE_DIR to a folder that other users cannot replace; or, after you "
            f"closed this one to them, {_delete(root)}"
        )
    return problem, help


def _delete(root: str) -> str:
    import shlex

    return (
        f"delete the cache with `rm -rf {shlex.quote(root)}` (closing it to other users is not "
        "enough: the engine would run files that they put there)"
    )


# What was told, so that it is told once.
_told: set[str] = set()


def _warn(problem: str, help: str) -> None:
    if problem in _told:
        return
    _told.add(problem)  # before: the warning may be made an error
    from engine.logger import log_warning

    log_warning(f"{problem}. {help[0].upper()}{help[1:]}.")


def _temporary(problem: tuple[str, str]) -> Cache:
    """A folder of this process, which is removed when it ends. problem: why there is none other.

    Raises CompilerError (E303) where others could exchange it.
    """
    import atexit
    import shutil
    import tempfile

    root = tempfile.mkdtemp(prefix="engine-kernels-")
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # not in a forked child
            shutil.rmtree(root, ignore_errors=True)

    atexit.register(remove)
    try:
        return Cache(private_folder(root), problem)
    except Untrusted as e:
        said = f"no folder for kernels is private: {e.path} {e.why}"
        help = "set ENGINE_CACHE_DIR or TMPDIR to a folder that only you can replace"
        raise CompilerError(Diagnostic("E303", said, help=help, notes=problem[:1])) from None
