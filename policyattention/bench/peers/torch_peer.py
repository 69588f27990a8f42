"""The same training step or closed loop in PyTorch:  python torch_peer.py PROBLEM.safetensors THREADS [compile]"""
import os, pathlib, sys, time

# PyTorch multiplies matrices by MKL, which on AMD's processors uses no AVX-512 unless it is told that they are
# Intel's, as a library does that set-up builds.
library = pathlib.Path(sys.prefix, "lib/mkl_as_on_intel.so")
if __name__ == "__main__" and library.exists() and "LD_PRELOAD" not in os.environ:
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"LD_PRELOAD": str(library)})

import numpy as np
import torch
import torch.nn.functional as F

import data


def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p[name + ".bias"])


def norm(p, name, x):
    return F.layer_norm(x, x.shape[-1:], p[name + ".gain"], p[name + ".bias"])


def attention(qkv):
    batch, length, _ = qkv.shape
    q, k, v = qkv.view(batch, length, 3, data.HEADS, -1).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, -1)


def last_attention(p, name, x, outputs):
    """The same for the last so many tokens alone."""
    (batch, length, width), weight, bias = x.shape, p[name + ".weight"], p[name + ".bias"]
    q = F.linear(x[:, -outputs:], weight[:width], bias[:width]).view(batch, outputs, data.HEADS, -1).transpose(1, 2)
    k, v = F.linear(x, weight[width:], bias[width:]).view(batch, length, 2, data.HEADS, -1).permute(2, 0, 3, 1, 4)
    visible = torch.ones(outputs, length, dtype=torch.bool).tril(length - outputs)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=visible).transpose(1, 2).reshape(batch, outputs, -1)


def blocks(p, h, outputs=None):
    """The outputs of all tokens, or of the last so many: for these alone the last block is computed then."""
    for layer in range(data.LAYERS):
        block = f"blocks.{layer}."
        x = norm(p, block + "norm1", h)
        if outputs and layer == data.LAYERS - 1:
            h, mixed = h[:, -outputs:], last_attention(p, block + "qkv", x, outputs)
        else:
            mixed = attention(linear(p, block + "qkv", x))
        h = h + linear(p, block + "out", mixed)
        h = h + linear(p, block + "down", F.relu(linear(p, block + "up", norm(p, block + "norm2", h))))
    return linear(p, "head", norm(p, "norm", h))


def network(p, tokens, outputs=None):
    return blocks(p, linear(p, "embed", tokens), outputs)[..., 0]


def actor_loss(p, tokens, prior, gain):
    logp = network(p, tokens).view(prior.shape).log_softmax(-1)
    return (logp.exp() * (logp - prior - gain)).sum(-1).mean()


def critic_loss(p, tokens, exact):
    return F.mse_loss(network(p, tokens, exact.shape[1]), exact)


def distill_loss(p, previous, reward, state, action):
    """Negative log-likelihood of actions. The embedding has columns for actions, reward, states and positions."""
    length, actions, embedding = action.shape[1], len(p["head.weight"]), p["embed.weight"]
    one_hot = lambda x, n: (x[..., None] == torch.arange(n)).float()
    seen = [one_hot(previous, actions), reward[..., None], one_hot(state, embedding.shape[1] - actions - 1 - length)]
    h = F.linear(torch.cat(seen, -1), embedding[:, :-length], p["embed.bias"]) + embedding[:, -length:].T
    return F.cross_entropy(blocks(p, h).flatten(0, 1), action.flatten())


LOSSES = {"actor": actor_loss, "critic": critic_loss, "distill": distill_loss}


@torch.inference_mode()
def closed_loop(tensors, compiled):
    """Rounds π ← actor(π, Q, η), Q ← r + γ P⟨π, Q⟩ on all problems at once."""
    problem = {k: torch.from_numpy(v) for k, v in tensors.items() if "." not in k}
    p = {k: torch.from_numpy(v.T.copy() if v.ndim == 2 else v) for k, v in tensors.items() if "." in k}
    names = torch.from_numpy(data.names(tensors["rewards"]))

    def step(pi, q):
        columns = torch.stack([x.flatten(1) for x in (pi, q, problem["eta"].expand_as(q))], -1)
        pi = network(p, torch.cat([names, columns], -1)).view(q.shape).softmax(-1)
        value = (pi * q).sum(-1)
        return pi, problem["rewards"] + problem["discount"] * torch.einsum("nsat,nt->nsa", problem["transitions"], value), value.mean()

    if compiled:
        step = torch.compile(step)

    def loop():
        pi, q, values = problem["policy"], problem["values"], []
        for _ in range(data.ROUNDS):
            pi, q, value = step(pi, q)
            values.append(value)
        return values

    def run(loops):
        for _ in range(loops):
            loop()
        return loops

    data.serve(run, loop())


def parameters(weights):
    """The weights by name; torch.nn keeps matrices as [out, in]."""
    return {k: torch.from_numpy(v.T.copy() if v.ndim == 2 else v).requires_grad_() for k, v in weights.items()}


def optimizer(p):
    return torch.optim.AdamW(p.values(), lr=data.RATE, weight_decay=data.DECAY, fused=True)


def main(path, threads, compiled=None):
    torch.set_num_threads(int(threads))
    tensors = data.read(path)
    if "transitions" in tensors:
        return closed_loop(tensors, compiled)
    objective, weights, arrays, index = data.split(tensors)
    arrays, index = [torch.from_numpy(a.astype(np.int64) if a.dtype == np.int32 else a) for a in arrays], torch.from_numpy(index).long()
    p = parameters(weights)
    adamw = optimizer(p)
    loss = LOSSES[objective]
    if compiled:
        loss = torch.compile(loss)
    losses, done = [], 0

    def run(steps):
        nonlocal done
        for _ in range(steps):
            batch = index[done % len(index)]
            value = loss(p, *(a[batch] for a in arrays))
            adamw.zero_grad()
            value.backward()
            adamw.step()
            if done < len(index):
                losses.append(value.item())
            done += 1
        return steps

    run(len(index))
    data.serve(run, losses)


if __name__ == "__main__":
    main(*sys.argv[1:])
