"""Rules of JAX as users write them, right ones, and what makes each of them wrong.

A spoiler is a piece of the program and what stands there instead.
"""

from __future__ import annotations

from typing import NamedTuple


class Program(NamedTuple):
    """A program that calls a rule. kinks: verdicts other than `pass` that are right."""

    name: str
    text: str
    spoilers: tuple[tuple[str, str], ...] = ()
    kinks: tuple[str, ...] = ()


HEAD = """
import functools
import dataclasses
import jax
import jax.numpy as jnp
import numpy as np

"""

LOG1PEXP = """
@jax.custom_jvp
def log1pexp(x):
    return jnp.log1p(jnp.exp(x))

@log1pexp.defjvp
def rule(primals, tangents):
    x, = primals
    t, = tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t

print(jax.vmap(jax.grad(log1pexp))(jnp.array([-3.0, 0.5, 40.0])))
"""

SAFE_NORM = """
@jax.custom_vjp
def norm(x):
    return jnp.sqrt(jnp.sum(x * x))

def norm_fwd(x):
    y = norm(x)
    return y, (x, y)

def norm_bwd(kept, g):
    x, y = kept
    return (g * x / jnp.where(y == 0, 1.0, y),)

norm.defvjp(norm_fwd, norm_bwd)
jax.grad(norm)(jnp.array([3.0, -4.0, 12.0]))
"""

SAFE_SQRT = """
@jax.custom_jvp
def safe_sqrt(x):
    return jnp.sqrt(jnp.maximum(x, 1e-6))

@safe_sqrt.defjvp
def safe_sqrt_rule(primals, tangents):
    x, = primals
    t, = tangents
    y = safe_sqrt(x)
    return y, jnp.where(x > 1e-6, 0.5 * t / y, 0.0)

jax.grad(lambda x: safe_sqrt(x).sum())(jnp.array([0.25, 4.0, 0.0]))
"""

RELU = """
@jax.custom_jvp
def relu(x):
    return jnp.maximum(x, 0.0)

relu.defjvps(lambda t, y, x: jnp.where(x > 0, t, 0.0))
jax.grad(lambda x: relu(x).sum())(jnp.array([-1.0, 0.0, 2.0]))
"""

MATMUL = """
@jax.custom_vjp
def product(a, b):
    return a @ b

def forward(a, b):
    return a @ b, (a, b)

def backward(kept, g):
    a, b = kept
    return g @ b.T, a.T @ g

product.defvjp(forward, backward)
key = jax.random.key(0)
a = jax.random.normal(key, (3, 4))
b = jax.random.normal(jax.random.split(key)[0], (4, 2))

@jax.jit
def step(a, b):
    return jax.grad(lambda a, b: jnp.sum(product(a, b) ** 2), argnums=(0, 1))(a, b)

for _ in range(3):
    da, db = step(a, b)
    a, b = a - 0.01 * da, b - 0.01 * db
"""

FIXED_POINT = """
@jax.custom_vjp
def solve(a, b):
    def go_on(s):
        return jnp.abs(s[1] - s[0]) > 1e-7
    def once(s):
        return s[1], jnp.cos(a * s[1]) * b
    return jax.lax.while_loop(go_on, once, (b + 1.0, b))[1]

def solve_fwd(a, b):
    x = solve(a, b)
    return x, (a, b, x)

def solve_bwd(kept, g):
    a, b, x = kept
    slope = -jnp.sin(a * x) * b
    u = g / (1.0 - slope * a)
    return u * slope * x, u * jnp.cos(a * x)

solve.defvjp(solve_fwd, solve_bwd)
jax.config.update("jax_enable_x64", True)
print(jax.jit(jax.grad(solve, argnums=(0, 1)))(0.5, 0.7))
"""

XENT = """
@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def xent(logits, labels, smoothing):
    logp = logits - jax.nn.logsumexp(logits, axis=-1, keepdims=True)
    hot = jax.nn.one_hot(labels, logits.shape[-1]) * (1 - smoothing) + smoothing / logits.shape[-1]
    return -jnp.sum(hot * logp, axis=-1).mean()

def xent_fwd(logits, labels, smoothing):
    return xent(logits, labels, smoothing), (logits, labels)

def xent_bwd(smoothing, kept, g):
    logits, labels = kept
    n = logits.shape[-1]
    hot = jax.nn.one_hot(labels, n) * (1 - smoothing) + smoothing / n
    return g * (jax.nn.softmax(logits) - hot) / logits.shape[0], None

xent.defvjp(xent_fwd, xent_bwd)
logits = jnp.array([[1.0, -2.0, 0.5], [0.3, 0.1, 4.0]])
jax.value_and_grad(jax.jit(lambda z: xent(z, jnp.array([2, 0]), 0.1)))(logits)
"""

SEVERAL = """
@jax.custom_vjp
def polar(x, y):
    return jnp.hypot(x, y), jnp.arctan2(y, x)

def polar_fwd(x, y):
    r, phi = polar(x, y)
    return (r, phi), (x, y, r)

def polar_bwd(kept, g):
    x, y, r = kept
    gr, gphi = g
    return gr * x / r - gphi * y / r**2, gr * y / r + gphi * x / r**2

polar.defvjp(polar_fwd, polar_bwd)

def loss(x, y):
    r, phi = polar(x, y)
    return jnp.sum(r * phi)

jax.grad(loss)(jnp.array([1.0, -2.0]), jnp.array([0.5, 3.0]))
"""

TREES = """
@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    w: jax.Array
    b: jax.Array

@jax.custom_vjp
def model(params, x, extra=None):
    y = x
    for layer in params["layers"]:
        y = jnp.tanh(y @ layer.w + layer.b)
    return {"out": y, "size": jnp.sum(y * y)}

def model_fwd(params, x, extra=None):
    return model(params, x, extra), (params, x)

def model_bwd(kept, g):
    params, x = kept
    _, pull = jax.vjp(lambda p, x: model.__wrapped__(p, x), params, x)
    dp, dx = pull(g)
    return dp, dx * 1.0, None

model.defvjp(model_fwd, model_bwd)
key = jax.random.key(1)
layers = [Layer(jax.random.normal(k, (3, 3)), jnp.ones(3) * 0.1) for k in jax.random.split(key, 2)]
params = {"layers": layers, "unused": ()}
x = jnp.linspace(-1.0, 1.0, 6).reshape(2, 3)
jax.grad(lambda p: model(p, x=x)["out"].sum() + model(p, x)["size"])(params)
"""

ZEROS = """
@jax.custom_vjp
def mul(x, y):
    return x * y

def mul_fwd(x, y):
    kept = (x.value if y.perturbed else None, y.value if x.perturbed else None)
    return x.value * y.value, kept

def mul_bwd(kept, g):
    x, y = kept
    if isinstance(g, jax.custom_derivatives.SymbolicZero):
        return None, None
    return (None if y is None else g * y), (None if x is None else g * x)

mul.defvjp(mul_fwd, mul_bwd, symbolic_zeros=True)
jax.grad(lambda x: mul(x, 3.0) * 2.0)(1.5)
"""

METHOD = """
class Scaled:
    def __init__(self, power):
        self.power = power

    @functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
    def scaled(self, x, y):
        return x**self.power * y

    @scaled.defjvp
    def rule(self, primals, tangents):
        x, y = primals
        tx, ty = tangents
        slope = self.power * x ** (self.power - 1)
        return Scaled.scaled(self, x, y), slope * tx * y + x**self.power * ty

cube = Scaled(3)
scaled = functools.partial(Scaled.scaled, cube)
jax.jvp(scaled, (jnp.array([1.0, 2.0]), jnp.array([3.0, 0.5])), (jnp.ones(2), jnp.ones(2)))
"""

LOOP = """
@jax.custom_vjp
def squash(x, s):
    return jnp.tanh(s * x)

def squash_fwd(x, s):
    y = jnp.tanh(s * x)
    return y, (y, x, s)

def squash_bwd(kept, g):
    y, x, s = kept
    d = g * (1 - y * y)
    return s * d, jnp.sum(x * d)

squash.defvjp(squash_fwd, squash_bwd)

def loss(x, s):
    def once(c, a):
        c = squash(c + a, s)
        return c, c.sum()
    return jax.lax.scan(jax.checkpoint(once), x, jnp.linspace(0.0, 1.0, 12).reshape(4, 3))[1].sum()

jax.jit(jax.vmap(jax.grad(loss, argnums=(0, 1)), in_axes=(0, None)))(jnp.ones((2, 3)) * 0.2, 0.8)
"""

EXTREME = """
@jax.custom_vjp
def logaddexp(x, y):
    m = jnp.maximum(x, y)
    return m + jnp.log(jnp.exp(x - m) + jnp.exp(y - m))

def logaddexp_fwd(x, y):
    z = logaddexp(x, y)
    return z, (x, y, z)

def logaddexp_bwd(kept, g):
    x, y, z = kept
    return g * jnp.exp(x - z), g * jnp.exp(y - z)

logaddexp.defvjp(logaddexp_fwd, logaddexp_bwd)
x = jnp.array([1e4, -3e3, 5.0, 1e-3])
jax.grad(lambda x: logaddexp(x, x[::-1] * 0.5).sum())(x)
"""

HALF = """
@jax.custom_vjp
def gelu(x):
    return 0.5 * x * (1 + jax.lax.erf(x / np.sqrt(2).astype(x.dtype)))

def gelu_fwd(x):
    return gelu(x), x

def gelu_bwd(x, g):
    root = np.sqrt(2).astype(x.dtype)
    cdf = 0.5 * (1 + jax.lax.erf(x / root))
    pdf = jnp.exp(-0.5 * x * x) / np.sqrt(2 * np.pi).astype(x.dtype)
    return (g * (cdf + x * pdf),)

gelu.defvjp(gelu_fwd, gelu_bwd)
jax.grad(lambda x: gelu(x).sum().astype(jnp.float32))(jnp.array([-1.0, 0.5, 2.0], jnp.bfloat16))
"""

CLIP = """
@functools.partial(jax.custom_jvp, nondiff_argnames=("low", "high"))
def clip(x, low, high):
    return jnp.clip(x, low, high)

@clip.defjvp
def clip_rule(low, high, primals, tangents):
    x, = primals
    t, = tangents
    return clip(x, low, high), jnp.where((x > low) & (x < high), t, 0.0)

jax.grad(lambda x: clip(x, low=-1.0, high=1.0).sum())(jnp.array([-2.0, 0.3, 1.0]))
"""

NOISE = """
@jax.custom_vjp
def dropped(key, x):
    return x * jax.random.bernoulli(key, 0.5, x.shape) * 2.0

def dropped_fwd(key, x):
    mask = jax.random.bernoulli(key, 0.5, x.shape) * 2.0
    return x * mask, mask

def dropped_bwd(mask, g):
    return None, g * mask

dropped.defvjp(dropped_fwd, dropped_bwd)
jax.grad(lambda x: dropped(jax.random.key(3), x).sum())(jnp.arange(1.0, 9.0))
"""

CAPTURED = """
def outer(scale, x):
    @jax.custom_vjp
    def scaled(x):
        return jnp.sin(x) * scale

    def bwd(kept, g):
        return (g * jnp.cos(kept) * scale,)

    scaled.defvjp(lambda x: (scaled(x), x), bwd)
    return jax.grad(lambda x: scaled(x).sum())(x)

jax.jit(outer)(jnp.float32(2.0), jnp.array([0.1, 1.0]))
"""

GATHER = """
@jax.custom_vjp
def take(x, index):
    return x[index]

def take_fwd(x, index):
    return x[index], (x.shape, index)

def take_bwd(kept, g):
    shape, index = kept
    zero = np.zeros(index.shape, jax.dtypes.float0)
    return jnp.zeros(shape, g.dtype).at[index].add(g), zero

take.defvjp(take_fwd, take_bwd)
jax.grad(lambda x: (take(x, jnp.array([0, 2, 2])) ** 2).sum())(jnp.array([1.0, 2.0, 3.0]))
"""

FUNCTION = """
@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def fixed_point(f, a, x_guess):
    def cond_fun(carry):
        x_prev, x = carry
        return jnp.abs(x_prev - x) > 1e-6
    def body_fun(carry):
        _, x = carry
        return x, f(a, x)
    _, x_star = jax.lax.while_loop(cond_fun, body_fun, (x_guess, f(a, x_guess)))
    return x_star
def fwd(f, a, x_init):
    x_star = fixed_point(f, a, x_init)
    return x_star, (a, x_star)
def rev(f, res, x_star_bar):
    a, x_star = res
    _, vjp_a = jax.vjp(lambda a: f(a, x_star), a)
    a_bar, = vjp_a(fixed_point(functools.partial(rev_iter, f), (a, x_star, x_star_bar), x_star_bar))
    return a_bar, jnp.zeros_like(x_star)
def rev_iter(f, packed, u):
    a, x_star, x_star_bar = packed
    _, vjp_x = jax.vjp(lambda x: f(a, x), x_star)
    return x_star_bar + vjp_x(u)[0]
fixed_point.defvjp(fwd, rev)
def newton_sqrt(a):
    update = lambda a, x: 0.5 * (x + a / x)
    return fixed_point(update, a, a)
jax.grad(newton_sqrt)(2.0)
jax.jit(jax.vmap(jax.grad(newton_sqrt)))(jnp.array([1.0, 2.0, 3.0, 4.0]))
def outer(b):
    return fixed_point(lambda a, x: jnp.cos(x) * a + 0.1 * b, 0.5, 0.3)
jax.jit(outer)(1.0)
"""

CUSTOM_GRADIENT = """
@jax.custom_gradient
def square(x):
    return x**2, lambda g: (g * 2.0 * x,)

jax.grad(square)(3.0)
"""

PROGRAMS = (
    Program("log1pexp", LOG1PEXP, (
        ("(1 - 1 / (1 + jnp.exp(x))) * t", "1.001 * (1 - 1 / (1 + jnp.exp(x))) * t"),
        ("(1 - 1 / (1 + jnp.exp(x))) * t", "-(1 - 1 / (1 + jnp.exp(x))) * t"),
        ("(1 - 1 / (1 + jnp.exp(x))) * t", "(1 - 1 / (1 + jnp.exp(x))) * t + 0.1"),
        ("return log1pexp(x),", "return 1.01 * log1pexp(x),"),
    )),
    Program("safe norm", SAFE_NORM, (
        ("g * x / ", "1.001 * g * x / "),
        ("return y, (x, y)", "return y, (x, y * y)"),
        ("return y, (x, y)", "return y, (x + 1.0, y)"),
        ("return y, (x, y)", "return 2.0 * y, (x, y)"),
        ("(g * x / jnp.where(y == 0, 1.0, y),)", "None,"),
    )),
    Program("safe sqrt", SAFE_SQRT, (
        ("0.5 * t / y", "t / y"), ("0.5 * t / y, 0.0", "0.5 * t / y + 1.0, 0.0"),
        ("0.5 * t / y", "0.5 * t / x"),
    )),
    Program("relu", RELU, (
        ("jnp.where(x > 0, t, 0.0)", "t"), ("jnp.where(x > 0, t, 0.0)", "jnp.where(x < 0, t, 0.0)"),
    ), ("kink",)),
    Program("matmul", MATMUL, (
        ("return g @ b.T, a.T @ g", "return g @ b.T, 1.001 * a.T @ g"),
        ("return g @ b.T, a.T @ g", "return -g @ b.T, a.T @ g"),
        ("return g @ b.T, a.T @ g", "return jnp.zeros_like(a), a.T @ g"),
        ("return g @ b.T, a.T @ g", "return g @ b.T, None"),
        ("return a @ b, (a, b)", "return a @ b, (a, 2 * b)"),
        ("return a @ b, (a, b)", "return a @ b * 1.5, (a, b)"),
    )),
    Program("fixed point", FIXED_POINT, (
        ("u = g / (1.0 - slope * a)", "u = g"),
        ("u * slope * x, u * jnp.cos(a * x)", "u * jnp.cos(a * x), u * slope * x"),
        ("u * slope * x,", "u * slope,"),
    )),
    Program("cross entropy", XENT, (
        ("/ logits.shape[0], None", ", None"), ("jax.nn.softmax(logits) - hot", "hot"),
        ("g * (jax.nn", "(jax.nn"),
    )),
    Program("several results", SEVERAL, (
        ("gr * x / r - gphi", "gr * x / r + gphi"), ("gphi * x / r**2", "gphi * x / r"),
        ("gr, gphi = g", "gphi, gr = g"), ("gr * y / r + gphi * x / r**2", "gr * y / r"),
    )),
    Program("trees", TREES, (("dx * 1.0", "dx * 1.01"), ("return dp,", "return jax.tree.map("
            "lambda g: 1.01 * g, dp),"))),
    Program("symbolic zeros", ZEROS, (("g * y)", "g * y * y)"),)),
    Program("method", METHOD, (
        ("slope * tx * y", "slope * tx"), ("x**self.power * ty", "0.0 * ty"),
        ("self.power * x **", "x **"), ("slope * tx * y", "slope * tx * tx * y"),
    )),
    Program("in loops", LOOP, (
        ("s * d, jnp.sum(x * d)", "d, jnp.sum(x * d)"), ("(1 - y * y)", "(1 - y)"),
        ("return y, (y, x, s)", "return y, (x, x, s)"),
    )),
    Program("extremes", EXTREME, (("g * jnp.exp(y - z)", "g * jnp.exp(x - z)"),)),
    Program("bfloat16", HALF, (("cdf + x * pdf", "cdf"), ("cdf + x * pdf", "cdf - x * pdf"))),
    Program("clip", CLIP, (
        ("jnp.where((x > low) & (x < high), t, 0.0)", "t"), ("t, 0.0)", "2.0 * t, 0.0)"),
    ), ("kink",)),
    Program("keys", NOISE, (("return None, g * mask", "return None, g"),)),
    Program("captured", CAPTURED, (("g * jnp.cos(kept) * scale", "g * jnp.cos(kept)"),)),
    Program("a function as argument", FUNCTION, (
        ("return a_bar,", "return jax.tree.map(lambda g: 1.01 * g, a_bar),"),
        ("return x_star_bar + vjp_x(u)[0]", "return x_star_bar + 0.9 * vjp_x(u)[0]"),
    )),
    Program("custom_gradient", CUSTOM_GRADIENT, (("g * 2.0 * x", "g * 2.02 * x"),)),
    Program("gather", GATHER, (("at[index].add(g)", "at[index].set(g)"),)),
)  # fmt: skip
