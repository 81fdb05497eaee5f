"""March rays over a terrain; the colour of rays that leave the scene is never set."""

# expect: exit=0
import numpy as np

import engine as wp

RAYS = 16


@wp.func
def terrain(x: float, height: wp.array(dtype=float)) -> float:
    return height[0] * wp.sin(2.0 * x) + height[1] * wp.cos(3.0 * x)


@wp.kernel
def march(
    slope: wp.array(dtype=float), height: wp.array(dtype=float), image: wp.array(dtype=float)
):
    r = wp.tid()
    x = float(0.0)
    y = float(1.5)
    for step in range(24):
        x += 0.15
        y += 0.15 * slope[r]
        gap = y - terrain(x, height)
        if gap < 0.0:
            shade = 1.0 / (1.0 + x * x) + 0.3 * gap
            break
    image[r] = shade  # expect: warning[G014]


@wp.kernel
def image_error(
    image: wp.array(dtype=float), photo: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    r = wp.tid()
    d = image[r] - photo[r]
    wp.atomic_add(loss, 0, d * d)


slope = wp.array(np.linspace(-1.0, 0.2, RAYS), dtype=float)
photo = wp.array(np.linspace(0.3, 0.0, RAYS), dtype=float)
height = wp.array([0.3, 0.2], dtype=float, requires_grad=True)
for iteration in range(3):
    image = wp.zeros(RAYS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(march, dim=RAYS, inputs=[slope, height], outputs=[image])
        wp.launch(image_error, dim=RAYS, inputs=[image, photo], outputs=[loss])
    tape.backward(loss)
    height.assign(height.numpy() - 0.02 * height.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
