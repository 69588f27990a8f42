"""What both peers share: the exported problem, and the protocol with the driver."""
import json, os, resource, struct, sys, time

import numpy as np

LAYERS, HEADS = 4, 4
ROUNDS = 40  # of a closed loop
RATE, DECAY = 3e-4, 1e-4


def read(path):
    """The tensors of a safetensors file as NumPy arrays."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        body = f.read()
    kinds = {"F32": np.float32, "I32": np.int32}
    return {
        name: np.frombuffer(body[slice(*t["data_offsets"])], kinds[t["dtype"]]).reshape(t["shape"]).copy()
        for name, t in header.items() if name != "__metadata__"
    }


def split(tensors):
    """Weights by name, the arrays of the examples in the objective's order, and the batches."""
    arrays = [tensors[k] for k in ("tokens", "prior", "gain", "weight", "mean", "exact") if k in tensors]
    weights = {k: v for k, v in tensors.items() if "." in k}
    return weights, arrays, tensors["index"]


def names(rewards):
    """What an actor's tokens begin with: one-hots of the state and the action, [problems, S·A, S + A]."""
    problems, states, actions = rewards.shape
    state, action = np.divmod(np.arange(states * actions), actions)
    token = np.concatenate([np.eye(states, dtype=np.float32)[state], np.eye(actions, dtype=np.float32)[action]], -1)
    return np.tile(token, (problems, 1, 1))


def serve(run, losses, began):
    """Answers "N" on standard input with the seconds (wall, processor) that N steps took.

    run(n) performs at least n steps and returns how many; losses are the numbers of the parity check.
    """
    def say(**line):
        line["rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(line), flush=True)

    say(losses=[float(x) for x in losses], ready_s=time.perf_counter() - began)
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        steps = run(int(line))
        say(steps=steps, wall=time.perf_counter() - wall, cpu=time.process_time() - cpu)
