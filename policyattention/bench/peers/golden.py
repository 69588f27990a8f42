"""Golden values of the network in JAX or PyTorch, in float64:  python golden.py jax|torch FILE.npz

Tests of policyattention/transformer hold the definition to the outputs and to the gradient of the proximal
loss in every parameter. The losses of ten steps of AdamW are there too.
"""
import sys

import numpy as np

import data

data.LAYERS, data.HEADS = 3, 2

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


def flat(tree):
    return np.concatenate([np.ravel(tree[name]) for name, _ in layout()])


def in_jax(p, tokens, prior, gain):
    """Outputs, gradient and losses."""
    import jax, jax.numpy as jnp, optax

    jax.config.update("jax_enable_x64", True)
    import jax_peer

    def loss(p):
        return STATES * jax_peer.actor_loss(p, tokens, prior, gain)

    outputs, gradient = jax_peer.network(p, tokens), jax.grad(loss)(p)
    adamw = optax.adamw(data.RATE, weight_decay=data.DECAY)
    state, losses = adamw.init(p), []
    for _ in range(STEPS):
        value, slope = jax.value_and_grad(loss)(p)
        losses.append(float(value))
        updates, state = adamw.update(slope, state, p)
        p = optax.apply_updates(p, updates)
    return np.asarray(outputs), flat(gradient), losses


def in_torch(p, tokens, prior, gain):
    """Outputs, gradient and losses."""
    import torch, torch_peer

    p = torch_peer.parameters(p)
    tokens, prior, gain = [torch.from_numpy(x) for x in (tokens, prior, gain)]
    outputs, adamw, losses, gradient = torch_peer.network(p, tokens), torch_peer.optimizer(p), [], None
    for _ in range(STEPS):
        value = STATES * torch_peer.actor_loss(p, tokens, prior, gain)
        losses.append(value.item())
        adamw.zero_grad()
        value.backward()
        if gradient is None:  # torch.nn keeps matrices as [out, in]
            gradient = flat({name: x.grad.T.numpy() if x.ndim == 2 else x.grad.numpy() for name, x in p.items()})
        adamw.step()
    return outputs.detach().numpy(), gradient, losses


def main(framework, path):
    rng = np.random.default_rng(1)
    p = {}
    for name, shape in layout():  # no bias is zero and no gain one
        p[name] = rng.normal(size=shape) / np.sqrt(shape[0]) if len(shape) == 2 else .1 * rng.normal(size=shape)
        if name.endswith(".gain"):
            p[name] += 1
    tokens = rng.normal(size=(BATCH, STATES * ACTIONS, FEATURES))
    prior = np.log(rng.dirichlet(np.ones(ACTIONS), size=(BATCH, STATES)))
    gain = rng.normal(size=prior.shape)
    arrays = dict(params=flat(p), tokens=tokens, prior=prior, gain=gain)  # PyTorch's steps change p
    outputs, gradient, losses = {"jax": in_jax, "torch": in_torch}[framework](p, tokens, prior, gain)
    np.savez_compressed(path, losses=np.array(losses), outputs=outputs, gradient=gradient, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
