"""The API for GPUs on a machine without one."""

import pytest

import engine as wp
from engine import LaunchError


@wp.kernel
def nothing(x: wp.array(dtype=float)):
    x[0] = 1.0


@pytest.mark.host("there is no GPU")
def test_there_is_no_gpu():
    assert wp.get_cuda_devices() == []
    assert wp.get_cuda_supported_archs() == []
    assert wp.get_cuda_toolkit_version() is None
    assert wp.get_cuda_driver_version() is None
    assert not wp.is_cubql_available()
    assert wp.get_cuda_max_cluster_dim(nothing) == 1
    assert wp.get_suggested_block_size(nothing, "cpu") == (1, 1)
    for what in (wp.is_mempool_supported, wp.is_mempool_enabled):
        assert what("cpu") is False
    for what in (wp.is_peer_access_supported, wp.is_peer_access_enabled,
                 wp.is_mempool_access_supported, wp.is_mempool_access_enabled):  # fmt: skip
        assert what("cpu", "cpu") is False
    assert wp.can_access("cpu", wp.zeros(1))
    wp.timing_begin()
    assert wp.timing_end() == []
    wp.cuda_profiler_start()
    wp.cuda_profiler_stop("cpu")


def test_the_cpu_as_a_device():
    cpu = wp.get_device("cpu")
    assert (cpu.arch, cpu.sm_count, cpu.max_shared_memory_per_block) == (0, 0, 0)
    assert not (cpu.is_mempool_supported or cpu.is_uva or cpu.is_primary)
    assert cpu.total_memory >= cpu.free_memory > 0
    assert cpu.can_access(cpu) and not cpu.is_cpu_gpu_atomic_supported
    assert not hasattr(cpu, "no_such_thing")


@pytest.mark.parametrize(
    "use", [lambda d: d.default_allocator.allocate(8), lambda d: d.get_allocator()]
)
def test_allocators_may_be_mentioned(use):
    assert wp.get_device("cpu").pinned_allocator is not None
    with pytest.raises(wp.LaunchError) as e:
        use(wp.get_device("cpu"))
    assert e.value.diagnostics[0].code == "E112"


@pytest.mark.parametrize(
    "change",
    [
        lambda: wp.set_mempool_enabled("cpu", True),
        lambda: wp.set_mempool_access_enabled("cpu", "cpu", True),
        lambda: wp.set_peer_access_enabled("cpu", "cpu", True),
        lambda: wp.set_mempool_release_threshold("cpu", 0),
        lambda: wp.get_mempool_used_mem_current("cpu"),
        lambda: wp.ScopedMempool("cpu", True),
        lambda: wp.ScopedAllocator("cpu", None),
        lambda: wp.map_cuda_device("other"),
        lambda: wp.unmap_cuda_device("other"),
        lambda: wp.get_cuda_device(0),
        lambda: wp.is_mempool_enabled("nowhere"),
    ],
)
def test_what_needs_one_is_refused(change):
    with pytest.raises(LaunchError, match="E208"):
        change()


def test_what_is_so_anyway_is_not():
    wp.set_mempool_enabled("cpu", False)
    wp.set_peer_access_enabled("cpu", "cpu", False)
    with wp.ScopedMempool("cpu", False), wp.ScopedPeerAccess("cpu", "cpu", False):
        pass
    with wp.ScopedMempoolAccess("cpu", "cpu", False), wp.ScopedCudaProfiler():
        pass
    with pytest.raises(LaunchError, match="E202"):
        wp.get_suggested_block_size(None)


def test_timings_are_printed(capsys):
    cpu = wp.get_device("cpu")
    wp.timing_print([wp.TimingResult(cpu, "fill", wp.TIMING_MEMSET, t) for t in (0.5, 0.25)], "  ")
    said = capsys.readouterr().out
    assert "0.250000 ms  cpu  fill" in said
    assert "0.750000 ms  in all, 2 of fill" in said
    wp.timing_print([])
    assert capsys.readouterr().out == "nothing was timed\n"
