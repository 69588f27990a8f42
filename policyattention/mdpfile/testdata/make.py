"""Makes the .npz files here with NumPy and SciPy: one problem in the forms that people save.

    pip install numpy scipy && python make.py
"""

import numpy as np
import scipy.sparse as sp

P = np.array([[[0.5, 0.5], [0, 1]], [[0.25, 0.75], [1, 0]]])  # [S, A, S]
r = np.array([[1.0, 2.0], [0.0, -1.0]])
stacked = P.reshape(4, 2)

for form in ("csr", "csc", "coo"):
    sp.save_npz(f"{form}.npz", sp.csr_matrix(stacked).asformat(form))
for a in range(2):
    sp.save_npz(f"action{a}.npz", sp.csr_matrix(P[:, a]))
np.savez("whole.npz", gamma=0.9, r=r, **np.load("csr.npz"))
np.savez("toolbox.npz", gamma=0.9, P=P.transpose(1, 0, 2), r=np.asfortranarray(r))
s, a, t = np.nonzero(P)
np.savez(
    "triplets.npz", gamma=0.9, state=s, action=np.array(["go", "stay"])[a], next=t, probability=P[s, a, t],
    reward=(r * [[1], [0]])[s, a].astype(np.float32), states=["A", "B"], terminal=["B"], start=np.array([1, 0]), shape=[2, 1],
)
masked = np.where([[0, 0], [0, 1]], np.inf, r)
np.savez("masked.npz", gamma=0.9, P=np.asfortranarray(P), costs=masked, start=1)

np.savez("ends.npz", gamma=0.9, state=[0, 1], action=[0, 0], next=[1, 0], probability=[1, 1], reward=[1, 0],
         terminal=[False, True])
