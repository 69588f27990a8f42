"""What both peers share: the exported problem, and the protocol with the driver."""
import json, struct, sys, time

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


OBJECTIVES = {
    "actor": ("tokens", "prior", "gain"),
    "critic": ("tokens", "exact"),
    "distill": ("previous", "reward", "state", "action"),
}


def split(tensors):
    """The objective, weights by name, the objective's arrays, and the places in them of each step's batch."""
    objective = next(k for k, names in OBJECTIVES.items() if set(names) <= set(tensors))
    weights = {k: v for k, v in tensors.items() if "." in k}
    arrays, index = [tensors[k] for k in OBJECTIVES[objective]], tensors["index"]
    if objective == "distill":  # one long history, and where in it the windows of a batch begin
        states, actions = arrays[2].max() + 1, arrays[3].max() + 1
        context = len(weights["embed.weight"]) - actions - 1 - states
        arrays, index = [a[:, 0] for a in arrays], index[..., None] + np.arange(context, dtype=np.int32)
    return objective, weights, arrays, index


def names(rewards):
    """What an actor's tokens begin with: one-hots of the state and the action, [problems, S·A, S + A]."""
    problems, states, actions = rewards.shape
    state, action = np.divmod(np.arange(states * actions), actions)
    token = np.concatenate([np.eye(states, dtype=np.float32)[state], np.eye(actions, dtype=np.float32)[action]], -1)
    return np.tile(token, (problems, 1, 1))


def serve(run, losses):
    """Answers "N" on standard input with the seconds (wall, processor) that N steps took.

    run(n) performs at least n steps and returns how many; losses are the numbers of the parity check.
    """
    def say(**line):
        print(json.dumps(line), flush=True)

    say(losses=[float(x) for x in losses])
    for line in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        steps = run(int(line))
        say(steps=steps, wall=time.perf_counter() - wall, cpu=time.process_time() - cpu)
