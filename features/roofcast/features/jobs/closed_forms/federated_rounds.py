"""Traffic of federated fine-tuning with adapters."""

from __future__ import annotations


def federated_byte(n_round: int, n_client: int, n_param_trained: float, byte_per_weight: float = 2.0) -> float:
    """Return the bytes that a server sends and receives: adapters go to each client of a round and come back.

    Parameters
    ----------
    n_client
        Clients that take part in one round.

    References
    ----------
    B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", 2017, algorithm 1.

    Examples
    --------
    100 rounds of 10 clients with LoRA of rank 16 on queries and values of Llama-2-7B, 8,388,608 weights in 16 bits:
    16.8 MB each way, against 13.5 GB for all weights.

    >>> federated_byte(100, 10, 8_388_608) / 10**9
    33.554432
    >>> round(federated_byte(100, 10, 6.74e9) / 10**12, 1)
    27.0
    """
    return 2.0 * n_round * n_client * n_param_trained * byte_per_weight


def federated_s(
    n_round: int, client_step_s: float, n_local_step: int, adapter_byte: float, client_byte_per_s: float
) -> float:
    """Return the time of all rounds: the clients of a round download, train and upload at the same time.

    Examples
    --------
    100 rounds of 20 steps of 2 s, and 16.8 MB over 12.5 MB/s both ways:

    >>> round(federated_s(100, 2.0, 20, 16.8e6, 12.5e6), 1)
    4268.8
    """
    return n_round * (n_local_step * client_step_s + 2.0 * adapter_byte / client_byte_per_s)
