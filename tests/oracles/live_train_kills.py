"""Fifty random `kill -9` of `limpid train`: no kill changes a bit of the run. (tests/cli/test_train.py has a few.)"""

import os

import limpid_program
from training_runs import Training


class Kills(Training):
    def test_fifty(self):
        seed = int.from_bytes(os.urandom(4), "little")
        print(f"seed {seed}", flush=True)
        self.kill_at_random(50, seed)

    def test_with_accumulated_batches_and_sgd(self):
        self.kill_at_random(10, 2, "--grad-accum", "2", "--optimizer", "sgd")


if __name__ == "__main__":
    limpid_program.main()
