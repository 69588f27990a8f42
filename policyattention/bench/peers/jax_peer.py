"""The same training step or closed loop in JAX:  python jax_peer.py PROBLEM.safetensors [STEPS PER CALL [IDENTITIES]]

Identities are runs that are trained together in one call. Here all are copies of the exported one,
with weights, examples and batches of their own; their steps count together.
"""
import sys, time

import jax, jax.numpy as jnp, optax

import data


def linear(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def norm(p, name, x):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * p[name + ".gain"] + p[name + ".bias"]


def blocks(p, h, outputs=None):
    """The outputs of all tokens, or of the last so many: for these alone the last block is computed then."""
    batch, length, width = h.shape
    visible = jnp.tril(jnp.ones((length, length), bool))
    for layer in range(data.LAYERS):
        block = f"blocks.{layer}."
        x = norm(p, block + "norm1", h)
        if outputs and layer == data.LAYERS - 1:
            weight, bias = p[block + "qkv.weight"], p[block + "qkv.bias"]
            h, visible = h[:, -outputs:], visible[-outputs:]
            q = x[:, -outputs:] @ weight[:, :width] + bias[:width]
            k, v = jnp.split(x @ weight[:, width:] + bias[width:], 2, -1)
        else:
            q, k, v = jnp.split(linear(p, block + "qkv", x), 3, -1)
        q, k, v = (x.reshape(batch, x.shape[1], data.HEADS, -1) for x in (q, k, v))
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(visible, scores, -1e9)), v)
        h = h + linear(p, block + "out", mixed.reshape(h.shape))
        h = h + linear(p, block + "down", jax.nn.relu(linear(p, block + "up", norm(p, block + "norm2", h))))
    return linear(p, "head", norm(p, "norm", h))


def network(p, tokens, outputs=None):
    return blocks(p, linear(p, "embed", tokens), outputs)[..., 0]


def actor_loss(p, tokens, prior, gain):
    logp = jax.nn.log_softmax(network(p, tokens).reshape(prior.shape))
    return (jnp.exp(logp) * (logp - prior - gain)).sum(-1).mean()


def critic_loss(p, tokens, exact):
    return jnp.square(network(p, tokens, exact.shape[1]) - exact).mean()


def distill_loss(p, previous, reward, state, action):
    """Negative log-likelihood of actions. The embedding has rows for actions, reward, states and positions."""
    length, actions, embedding = action.shape[1], p["head.weight"].shape[1], p["embed.weight"]
    seen = [jax.nn.one_hot(previous, actions), reward[..., None], jax.nn.one_hot(state, len(embedding) - actions - 1 - length)]
    logits = blocks(p, jnp.concatenate(seen, -1) @ embedding[:-length] + embedding[-length:] + p["embed.bias"])
    return optax.softmax_cross_entropy_with_integer_labels(logits, action).mean()


LOSSES = {"actor": actor_loss, "critic": critic_loss, "distill": distill_loss}


def closed_loop(tensors, per_call):
    """Rounds π ← actor(π, Q, η), Q ← r + γ P⟨π, Q⟩ on all problems at once, one or all of them in a call."""
    problem = {k: jnp.array(v) for k, v in tensors.items() if "." not in k}
    p = {k: jnp.array(v) for k, v in tensors.items() if "." in k}
    names = jnp.array(data.names(tensors["rewards"]))
    eta, discount = problem["eta"][0], problem["discount"][0]

    def step(state, _=None):
        pi, q = state
        columns = jnp.stack([x.reshape(len(x), -1) for x in (pi, q, jnp.full_like(q, eta))], -1)
        pi = jax.nn.softmax(network(p, jnp.concatenate([names, columns], -1)).reshape(q.shape))
        value = (pi * q).sum(-1)
        return (pi, problem["rewards"] + discount * jnp.einsum("nsat,nt->nsa", problem["transitions"], value)), value.mean()

    one, scanned = jax.jit(step), jax.jit(lambda state: jax.lax.scan(step, state, length=per_call))

    def loop():
        state, values = (problem["policy"], problem["values"]), []
        if per_call > 1:
            return jax.block_until_ready(scanned(state))[1]
        for _ in range(data.ROUNDS):
            state, value = one(state)
            values.append(value)
        return jax.block_until_ready(values)

    def run(loops):
        for _ in range(loops):
            loop()
        return loops

    data.serve(run, loop())


def main(path, per_call=1, identities=1):
    tensors = data.read(path)
    if "transitions" in tensors:
        return closed_loop(tensors, per_call)
    objective, weights, arrays, index = data.split(tensors)
    arrays, index = [jnp.array(a) for a in arrays], jnp.array(index)
    loss = LOSSES[objective]
    adamw = optax.adamw(data.RATE, weight_decay=data.DECAY)

    def update(arrays, state, batch):
        p, moments = state
        value, grads = jax.value_and_grad(loss)(p, *(a[batch] for a in arrays))
        updates, moments = adamw.update(grads, moments, p)
        return (optax.apply_updates(p, updates), moments), value

    p = {k: jnp.array(v) for k, v in weights.items()}
    state = p, adamw.init(p)
    if identities > 1:
        copies = lambda x: jnp.stack([x] * identities)
        update, arrays, state = jax.vmap(update), *jax.tree.map(copies, (arrays, state))
        index = jnp.stack([index] * identities, 1)
    step = lambda state, batch: update(arrays, state, batch)
    call = jax.jit(lambda s, b: jax.lax.scan(step, s, b) if per_call > 1 else step(s, b[0]), donate_argnums=0)
    losses, done = [], 0

    def run(steps):
        nonlocal state, done
        calls = -(-steps // (per_call * identities))
        for _ in range(calls):
            at = done % (len(index) - per_call + 1)
            state, value = call(state, index[at:at + per_call])
            value.block_until_ready()
            if done < len(index):
                losses.extend(value.reshape(-1, identities)[:, 0].tolist())
            done += per_call
        return calls * per_call * identities

    run(len(index) * identities)
    data.serve(run, losses)


if __name__ == "__main__":
    main(sys.argv[1], *(int(a) for a in sys.argv[2:]))
