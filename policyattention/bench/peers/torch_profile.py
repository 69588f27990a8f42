"""One part of a training step in PyTorch, forward and backward, by itself, in one thread:
python torch_profile.py PROBLEM.safetensors linear|attention|"layer norm"|optimizer

All layers of the part lie side by side, each with a random input of its own; the loss is half the
sum of all squared outputs, so that the slope at an output is the output itself.
"""
import sys, time

import torch
import torch.nn.functional as F

import data
from torch_peer import attention, linear, norm, optimizer, parameters


def layers(part, p):
    """The layers of a part: the features of the input, the names of the parameters, the function."""
    blocks = [f"blocks.{layer}." for layer in range(data.LAYERS)]
    width = len(p["norm.gain"])

    def one(name):
        return p[name + ".weight"].shape[1], [name], lambda x: linear(p, name, x)

    def forward(block):
        return width, [block + "up", block + "down"], lambda x: linear(p, block + "down", F.relu(linear(p, block + "up", x)))

    def normed(name):
        return width, [name], lambda x: norm(p, name, x)

    return {
        "linear": [one("embed"), *(f for b in blocks for f in (one(b + "qkv"), one(b + "out"), forward(b))), one("head")],
        "attention": [(3 * width, [], attention)] * data.LAYERS,
        "layer norm": [*(normed(b + n) for b in blocks for n in ("norm1", "norm2")), normed("norm")],
    }[part]


def main(path, part):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    began = time.perf_counter()
    _, weights, arrays, index = data.split(data.read(path))
    p = parameters(weights)
    if part == "optimizer":
        adamw = optimizer(p)
        for x in p.values():
            x.grad = torch.randn_like(x)
        step = adamw.step
    else:
        sizes, names, functions = zip(*layers(part, p))
        inputs = [torch.randn(index.shape[1], arrays[0].shape[1], n, requires_grad=True) for n in sizes]
        used = [p[k] for name in sum(names, []) for k in p if k.startswith(name + ".")]

        def step():
            outputs = [f(x) for f, x in zip(functions, inputs)]
            torch.autograd.grad(outputs, inputs + used, [y.detach() for y in outputs])

    def run(steps):
        for _ in range(steps):
            step()
        return steps

    run(1)
    data.serve(run, [], began)


if __name__ == "__main__":
    main(*sys.argv[1:])
