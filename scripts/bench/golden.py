"""Golden values of the network in JAX, in float64:  python golden.py FILE.npz

They are what tests of policyattention/transformer hold the definition to: outputs, the gradient of
the proximal loss in every parameter, and the losses of ten steps of AdamW.
"""
import sys

import jax, jax.numpy as jnp, numpy as np, optax

import data

jax.config.update("jax_enable_x64", True)
data.LAYERS, data.HEADS = 3, 2
import jax_peer

FEATURES, WIDTH, HIDDEN = 5, 8, 12
BATCH, STATES, ACTIONS = 4, 3, 3
STEPS = 10


def layout():
    """Names and shapes of the parameters, in the order of the flat vector."""
    linear = lambda name, i, o: [(name + ".weight", (i, o)), (name + ".bias", (o,))]
    norm = lambda name: [(name + ".gain", (WIDTH,)), (name + ".bias", (WIDTH,))]
    yield from linear("embed", FEATURES, WIDTH)
    for layer in range(data.LAYERS):
        block = f"blocks.{layer}."
        yield from norm(block + "norm1")
        yield from linear(block + "qkv", WIDTH, 3 * WIDTH)
        yield from linear(block + "out", WIDTH, WIDTH)
        yield from norm(block + "norm2")
        yield from linear(block + "up", WIDTH, HIDDEN)
        yield from linear(block + "down", HIDDEN, WIDTH)
    yield from norm("norm")
    yield from linear("head", WIDTH, 1)


def loss(p, tokens, prior, gain):
    """KL(π ‖ prior) − ⟨π, gain⟩, summed over states, mean over the batch."""
    return jax_peer.actor_loss(p, tokens, prior, gain, jnp.ones(prior.shape[:-1]))


def main(path):
    rng = np.random.default_rng(1)
    p = {}
    for name, shape in layout():  # no bias is zero and no gain one
        p[name] = rng.normal(size=shape) / np.sqrt(shape[0]) if len(shape) == 2 else .1 * rng.normal(size=shape)
        if name.endswith(".gain"):
            p[name] += 1
    tokens = rng.normal(size=(BATCH, STATES * ACTIONS, FEATURES))
    prior = np.log(rng.dirichlet(np.ones(ACTIONS), size=(BATCH, STATES)))
    gain = rng.normal(size=prior.shape)
    flat = lambda tree: np.concatenate([np.ravel(tree[name]) for name, _ in layout()])

    arrays = dict(params=flat(p), tokens=tokens, prior=prior, gain=gain)
    arrays["outputs"] = np.asarray(jax_peer.network(p, tokens))
    arrays["gradient"] = flat(jax.grad(loss)(p, tokens, prior, gain))
    adamw = optax.adamw(data.RATE, weight_decay=data.DECAY)
    state, losses = adamw.init(p), []
    for _ in range(STEPS):
        value, gradient = jax.value_and_grad(loss)(p, tokens, prior, gain)
        losses.append(float(value))
        updates, state = adamw.update(gradient, state, p)
        p = optax.apply_updates(p, updates)
    np.savez_compressed(path, losses=np.array(losses), **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
