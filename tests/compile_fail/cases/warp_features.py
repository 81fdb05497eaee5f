# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    i = wp.tid()
    t = wp.tile_load(a, shape=16)
    #   ^^^^^^^^^^^^ E112 `wp.tile_load`: tiles are not supported
    s = wp.spatial_mass(a, 0, 1, a)
    #   ^^^^^^^^^^^^^^^ E112 `wp.spatial_mass`: matrices of whole mechanisms are not supported
    m = wp.mesh_query_point(0, wp.vec3(), 1.0)
    #   ^^^^^^^^^^^^^^^^^^^ E112 `wp.mesh_query_point`: meshes are not supported
    h = wp.hash_grid_query(0, wp.vec3(), 1.0)
    #   ^^^^^^^^^^^^^^^^^^ E112 `wp.hash_grid_query`: hash grids are not supported


@wp.kernel
def returning(a: wp.array(dtype=float)):
    return a[0]
    # ^^^^^^^^^ E109 a kernel cannot return a value
