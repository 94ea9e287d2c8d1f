"""The peer's side of the comparison, in a separate process: replies to the same lines as
bench_engine, with the times of llama_decode and a greedy choice. The peer is the package llama_cpp or
ik_llama_cpp, a fork with kernels of its own for quantized weights.

    llama_cpp_worker.py PACKAGE FILE.gguf THREADS
    run NUM_SEQS PROMPT_LEN OUTPUT_LEN SEED FLASH   →  {"prefill_s", "decode_tokens", "decode_s"}
    logprobs {"ids": [...], "tokens": [[...], ...]}  →  {"logprobs": [[...], ...]}

A context has as many sequences as the workload, each with its own cache (kv_unified off), which is
llama.cpp's faster mode. The last prompt of a context is computed only once.
"""

import ctypes
import importlib
import json
import os
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

sys.path = [path for path in sys.path if not path.endswith("bench/peers")]  # the packages, not files of this folder


class LlamaCpp:
    """The C interface, with the names of llama-cpp-python."""

    def __init__(self) -> None:
        package = importlib.import_module("llama_cpp")
        self.lib: Any = package
        self.version = package.__version__

    def set_flash(self, params: Any, flash: bool) -> None:
        params.flash_attn_type = int(flash)  # LLAMA_FLASH_ATTN_TYPE_{DISABLED,ENABLED}
        params.kv_unified = False

    def set_log(self, callback: Any) -> Any:
        kept = self.lib.llama_log_callback(callback)
        self.lib.llama_log_set(kept, None)
        return kept  # must outlive the library's use of it

    def remove(self, context: Any, num_seqs: int, first_position: int) -> bool:
        """Returns False if nothing was removed: a recurrent state has no earlier positions."""
        memory = self.lib.llama_get_memory(context)  # one of a hybrid takes no -1 for all sequences
        return all(self.lib.llama_memory_seq_rm(memory, seq, first_position, -1) for seq in range(num_seqs))

    def system(self) -> str:
        return self.lib.llama_print_system_info().decode()


class IkLlamaCpp:
    """The same of ik-llama-cpp-python, which binds only a part of an older interface."""

    def __init__(self) -> None:
        self.version = importlib.import_module("ik_llama_cpp").__version__
        self.lib: Any = importlib.import_module("ik_llama_cpp._ctypes_api")
        functions = self.lib._lib
        functions.llama_get_logits.argtypes = [ctypes.c_void_p]
        functions.llama_get_logits.restype = ctypes.POINTER(ctypes.c_float)
        functions.llama_kv_cache_seq_rm.argtypes = [ctypes.c_void_p] + [ctypes.c_int32] * 3
        functions.llama_print_system_info.restype = ctypes.c_char_p
        self.lib.llama_get_logits = functions.llama_get_logits

    def set_flash(self, params: Any, flash: bool) -> None:
        # With several sequences it aborts: "GGML_ASSERT(S > 0) failed" (0.1.5).
        params.flash_attn = flash and params.n_seq_max == 1

    def set_log(self, callback: Any) -> Any:
        kept = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(callback)
        self.lib._lib.llama_log_set(kept, None)
        return kept

    def remove(self, context: Any, num_seqs: int, first_position: int) -> bool:
        self.lib._lib.llama_kv_cache_seq_rm(context, -1, first_position, -1)
        return True

    def system(self) -> str:
        return self.lib._lib.llama_print_system_info().decode()


PACKAGES = {"llama_cpp": LlamaCpp, "ik_llama_cpp": IkLlamaCpp}


@dataclass
class Context:
    lib: Any
    handle: Any
    num_seqs: int
    vocab_size: int
    batch: Any
    prompt_key: tuple[int, int] | None = None  # the prompts at the beginning of its cache
    next_ids: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))

    def decode(self, ids: np.ndarray, first_position: int, num_new: int) -> float:
        """Decodes ids [num_seqs, num_new] with the logits of each last token. Returns seconds."""
        batch, n = self.batch, 0
        for seq in range(self.num_seqs):
            for i in range(num_new):
                batch.token[n] = int(ids[seq, i])
                batch.pos[n] = first_position + i
                batch.n_seq_id[n] = 1
                batch.seq_id[n][0] = seq
                batch.logits[n] = i == num_new - 1
                n += 1
        batch.n_tokens = n
        start = time.perf_counter()
        if self.lib.llama_decode(self.handle, batch) != 0:
            raise RuntimeError("llama_decode failed")
        logits = self.lib.llama_get_logits(self.handle)
        address = ctypes.addressof(logits.contents)
        size = self.num_seqs * self.vocab_size
        view = np.frombuffer((ctypes.c_float * size).from_address(address), np.float32)
        self.next_ids = view.reshape(self.num_seqs, self.vocab_size).argmax(axis=1)
        return time.perf_counter() - start


class Worker:
    def __init__(self, package: str, path: str, threads: int) -> None:
        self.peer = PACKAGES[package]()
        self.lib = lib = self.peer.lib
        self.threads = threads
        lib.llama_backend_init()
        self.log = self.peer.set_log(lambda level, text, data: None)
        params = lib.llama_model_default_params()
        params.use_mmap = False  # uses anonymous memory, as Quire's weights do
        self.model = lib.llama_model_load_from_file(path.encode(), params)
        if not self.model:
            raise RuntimeError(f"{package} cannot load {path}")
        self.vocab_size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(self.model))
        self.contexts: dict[tuple[int, int, bool], Context] = {}

    def context(self, num_seqs: int, length: int, flash: bool) -> Context:
        key = (num_seqs, length, flash)
        if key not in self.contexts:
            params = self.lib.llama_context_default_params()
            params.n_ctx = num_seqs * length
            params.n_batch = params.n_ubatch = 512
            params.n_seq_max = num_seqs
            params.n_threads = params.n_threads_batch = self.threads
            self.peer.set_flash(params, flash)
            handle = self.lib.llama_init_from_model(self.model, params)
            if not handle:
                raise RuntimeError(f"the peer cannot make a context of {params.n_ctx} tokens")
            self.contexts[key] = Context(self.lib, handle, num_seqs, self.vocab_size,
                                         self.lib.llama_batch_init(512, 0, 1))
        return self.contexts[key]

    def prefill(self, context: Context, prompt_len: int, seed: int) -> float:
        self.peer.remove(context.handle, context.num_seqs, 0)
        ids = np.random.default_rng(seed).integers(0, self.vocab_size, (context.num_seqs, prompt_len))
        elapsed, chunk = 0.0, 512 // context.num_seqs
        for begin in range(0, prompt_len, chunk):
            num_new = min(chunk, prompt_len - begin)
            elapsed += context.decode(ids[:, begin:begin + num_new], begin, num_new)
        context.prompt_key = (prompt_len, seed)
        return elapsed

    def run(self, num_seqs: int, prompt_len: int, output_len: int, seed: int, flash: bool) -> dict[str, float]:
        length = -(-(prompt_len + output_len) // 256) * 256
        context = self.context(num_seqs, length, flash)
        prefill_s = 0.0
        is_kept = context.prompt_key == (prompt_len, seed)
        if not is_kept or not self.peer.remove(context.handle, num_seqs, prompt_len):
            prefill_s = self.prefill(context, prompt_len, seed)
        decode_s = sum(context.decode(context.next_ids[:, None], prompt_len + i, 1) for i in range(output_len - 1))
        return {"prefill_s": prefill_s, "decode_tokens": num_seqs * (output_len - 1), "decode_s": decode_s}

    def logprobs(self, ids: list[int], tokens: list[list[int]]) -> list[list[float]]:
        """The log probabilities of tokens[i] after ids[:i + 1], with a cache in F32."""
        params = self.lib.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = len(ids)
        params.n_threads = params.n_threads_batch = self.threads
        params.type_k = params.type_v = 0  # F32
        self.peer.set_flash(params, False)
        handle = self.lib.llama_init_from_model(self.model, params)
        batch = self.lib.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, True
            batch.seq_id[i][0] = 0
        if self.lib.llama_decode(handle, batch) != 0:
            raise RuntimeError("llama_decode failed")
        size = len(ids) * self.vocab_size
        address = ctypes.addressof(self.lib.llama_get_logits(handle).contents)
        view = np.frombuffer((ctypes.c_float * size).from_address(address), np.float32)
        rows = []
        for logits, wanted in zip(view.reshape(len(ids), self.vocab_size), tokens):
            shifted = logits.astype(np.float64) - logits.max()
            rows.append((shifted[wanted] - np.log(np.exp(shifted).sum())).tolist())
        self.lib.llama_batch_free(batch)
        self.lib.llama_free(handle)
        return rows


def main() -> None:
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the packages also print to standard output
    worker = Worker(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    print(json.dumps({"system": worker.peer.system(), "version": worker.peer.version}), file=replies, flush=True)
    for line in sys.stdin:
        if line.startswith("logprobs "):
            print(json.dumps({"logprobs": worker.logprobs(**json.loads(line.split(" ", 1)[1]))}), file=replies, flush=True)
            continue
        num_seqs, prompt_len, output_len, seed, flash = map(int, line.split()[1:])
        times = worker.run(num_seqs, prompt_len, output_len, seed, bool(flash))
        print(json.dumps(times), file=replies, flush=True)


if __name__ == "__main__":
    main()
