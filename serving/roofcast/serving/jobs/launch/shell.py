"""Shell text of launch commands: variables that the reader sets, and commands of one argument a line."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from roofcast.serving.jobs.search.candidates import Hardware

PORT: Final = 29500
OUTPUT: Final = {"OUT": "folder for checkpoints"}
LEARNING_RATE: Final = {"LEARNING_RATE": "peak learning rate"}
NODES: Final = {"HEAD_NODE": "address of the first node", "NODE_RANK": "number of this node, from 0"}

Arguments = Iterable[tuple[str, Any]]
"""Names with their values; None for switches."""


LOGIN: Final = "HF_TOKEN: set it where a checkpoint or data set of Hugging Face asks for a login"
"""Remark on the variable that `huggingface_hub` reads."""


def subshell(names: Mapping[str, str], commands: str, remarks: Iterable[str] = ()) -> str:
    r"""Return commands in a subshell that ends with a message where a variable is not set, or a command fails.

    An interactive shell, into which the text is pasted, would go on after ``${OUT:?}``; a subshell of it does not.

    `remarks`: comments above, without quotes.

    Examples
    --------
    >>> print(subshell({"OUT": "folder for checkpoints"}, "ls $OUT\n"), end="")
    (
    set -eu
    : "${OUT:?folder for checkpoints}"
    ls $OUT
    )
    """
    checks = "".join(f': "${{{name}:?{meaning}}}"\n' for name, meaning in names.items())
    head = "".join(f"# {remark}\n" for remark in remarks)
    return f"{head}(\nset -eu\n{checks}{commands})\n"


def here_document(path: str, lines: Iterable[str]) -> str:
    """Return a command that writes lines into a file; variables are replaced."""
    return "\n".join([f"cat > {path} <<END", *lines, "END"]) + "\n"


def command(head: str, arguments: Arguments) -> str:
    """Return a command with its arguments, one a line."""
    parts = [f"--{name}" if value is None else f"--{name} {value}" for name, value in arguments]
    return " \\\n  ".join([head, *parts]) + "\n"


def torchrun(hardware: Hardware) -> str:
    """Return the start of a torchrun command; the nodes of a run meet at `HEAD_NODE`."""
    nodes = f"--nnodes {hardware.n_node} --nproc-per-node {hardware.n_per_node}"
    place = f"--rdzv-backend c10d --rdzv-endpoint $HEAD_NODE:{PORT}" if hardware.n_node > 1 else "--standalone"
    return f"torchrun {nodes} {place}"


def node_variables(hardware: Hardware) -> dict[str, str]:
    """Return the variables of a torchrun command on several nodes."""
    return {"HEAD_NODE": NODES["HEAD_NODE"]} if hardware.n_node > 1 else {}
