"""How crowded it is around each point, and where to move to be less crowded."""

import engine as wp


@wp.kernel
def crowd(grid: wp.uint64, x: wp.array(dtype=wp.vec3), radius: float,
          total: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    for j in wp.hash_grid_query(grid, x[i], radius):
        near = radius - wp.length(x[i] - x[j])
        if j != i and near > 0.0:
            wp.atomic_add(total, 0, near)


x = wp.array([[0, 0, 0], [0.3, 0, 0], [0, 0.4, 0], [2, 0, 0]], dtype=wp.vec3, requires_grad=True)
total = wp.zeros(1, dtype=float, requires_grad=True)
grid = wp.HashGrid(16, 16, 16)
grid.build(x, radius=0.45)
with wp.Tape() as tape:
    wp.launch(crowd, dim=4, inputs=[grid.id, x, 0.45], outputs=[total])
tape.backward(total)
print("crowding:", total)
print("gradient:", x.grad)
