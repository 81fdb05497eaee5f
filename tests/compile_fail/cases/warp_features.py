# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    i = wp.tid()
    t = wp.tile_load(a, shape=16)
    #   ^^^^^^^^^^^^ E112 `wp.tile_load`: tiles are not supported
    s = wp.spatial_mass(a, 0, 1, a)
    #   ^^^^^^^^^^^^^^^ E112 `wp.spatial_mass`: matrices of whole mechanisms are not supported


@wp.kernel
def returning(a: wp.array(dtype=float)):
    return a[0]
    # ^^^^^^^^^ E109 a kernel cannot return a value


@wp.kernel
def spatial_queries(a: wp.array(dtype=float), grid: "wp.Volume"):
    #                                         ^^^^^^^^^^^^^^^^^ E112 volumes are not supported
    v: wp.Volume = a[0]
    #  ^^^^^^^^^ E112 `Volume`: volumes are not supported
    s = wp.volume_sample(0, wp.vec3(), wp.Volume.LINEAR)
    #   ^^^^^^^^^^^^^^^^ E112 `wp.volume_sample`: volumes are not supported
    #                                  ^^^^^^^^^ E112 `wp.Volume`: volumes are not supported
    c = wp.texture_sample(0, 0.5, 0.5, dtype=float)
    #   ^^^^^^^^^^^^^^^^^ E112 `wp.texture_sample`: textures are not supported
