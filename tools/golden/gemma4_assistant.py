"""Writes the drafts of tiny Gemma 4 drafters, without their weights.

    pip install torch==2.11.0 transformers==5.24.0 numpy
    python tools/golden/gemma4_assistant.py --families tests/golden/families --output tests/golden/gemma4_drafters

The targets are those of tools/golden/families.py, which also says how weights are made from a seed. Each file holds:

    target        the name of the target's file
    num_drafts    per step

and, as the files of families, the drafter's config.json, tensors, and one prompt. The ids that follow are those of the
output if all drafts are accepted: after each of the target's ids, the drafts.

A seed is refused if float32 and float64 differ, if a draft has a near-tie, or if a weight does not change a draft.
"""

import argparse
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from families import (BadSeed, MAX_SEEDS, StoredTensor, TOLERANCE, class_of, computing_in, distribution_of,
                      readable_numbers, write_json)
from family_configs import COMMON, FAMILIES, GEMMA4
from safetensors.numpy import save_file

Config = dict[str, Any]
NUM_DRAFTS = 3
NUM_IDS = 40
TARGETS = ("gemma4_small", "gemma4_large", "gemma4_unified")


def drafter_config(target: Config) -> Config:
    text = target["text_config"]
    is_unified = target["model_type"] == "gemma4_unified"
    own = COMMON | GEMMA4 | {
        "model_type": "gemma4_unified_text" if is_unified else "gemma4_text", "hidden_size": 24, "intermediate_size": 28,
        "num_hidden_layers": 3, "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "num_kv_shared_layers": 3, "num_attention_heads": 8, "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0, "final_logit_softcapping": None}
    for key in ("attention_k_eq_v", "num_global_key_value_heads"):
        if key in text:
            own[key] = text[key]
    kind = "Gemma4UnifiedAssistant" if is_unified else "Gemma4Assistant"
    return {"architectures": [f"{kind}ForCausalLM"],
            "model_type": "gemma4_unified_assistant" if is_unified else "gemma4_assistant",
            "backbone_hidden_size": text["hidden_size"], "use_ordered_embeddings": False,
            "tie_word_embeddings": True, "dtype": "bfloat16", "text_config": own}


def load(folder: Path, config: Config, tensors: dict[str, np.ndarray], dtype: torch.dtype) -> Any:
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", config)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model, info = class_of(config).from_pretrained(folder, dtype=dtype, attn_implementation="eager",
                                                   output_loading_info=True)
    assert not any(info.values()), info
    return model.eval()


def shapes_of(config: Config, folder: Path) -> dict[str, list[int]]:
    write_json(folder / "config.json", config)
    model = class_of(config)(transformers.AutoConfig.from_pretrained(folder))
    return {name: list(weight.shape) for name, weight in model.state_dict().items() if name != "lm_head.weight"}


def run_target(target: Any, ids: list[int]) -> Any:
    return target(input_ids=torch.tensor([ids]), use_cache=False, output_hidden_states=True,
                  return_shared_kv_states=True)


def best_of(logits: torch.Tensor) -> int:
    best, second = logits.topk(2).values.tolist()
    if best - second < 10 * TOLERANCE * logits.abs().max().item():
        raise BadSeed("a near-tie")
    return int(logits.argmax())


def drafts_after(target: Any, drafter: Any, ids: list[int]) -> list[int]:
    """The drafts after ids[-1], which the target has sampled and not computed."""
    outputs = run_target(target, ids[:-1])
    hidden = outputs.hidden_states[-1][:, -1:]
    position = torch.tensor([[len(ids) - 1]])
    drafts: list[int] = []
    newest = ids[-1]
    for _ in range(NUM_DRAFTS):
        embedding = target.get_input_embeddings()(torch.tensor([[newest]]))
        output = drafter(inputs_embeds=torch.cat([embedding, hidden], dim=-1), position_ids=position,
                         shared_kv_states=outputs.shared_kv_states)
        newest = best_of(output.logits[0, -1])
        hidden = output.last_hidden_state
        drafts.append(newest)
    return drafts


def follow(target: Any, drafter: Any, prompt: list[int]) -> list[int]:
    ids = list(prompt)
    while len(ids) < len(prompt) + NUM_IDS:
        ids.append(best_of(run_target(target, ids).logits[0, -1]))
        ids += drafts_after(target, drafter, ids)
    return ids[len(prompt):]


def check_weights_show(target: Any, drafter: Any, prompt: list[int], following: list[int]) -> None:
    generator = torch.Generator().manual_seed(0)
    for name, weight in drafter.state_dict().items():
        if name == "model.layers.2.layer_scalar":
            continue  # the final norm divides by it
        before = weight.clone()
        noise = torch.randn(weight.shape, generator=generator) if weight.numel() > 1 else torch.tensor([4.0])
        weight.copy_(before + before.abs().mean() * noise)
        try:
            is_same = follow(target, drafter, prompt) == following
        except BadSeed:
            is_same = False
        weight.copy_(before)
        if is_same:
            raise BadSeed(f"{name} does not show in the drafts")


def golden_of(family: Config, config: Config, tensors: list[StoredTensor], seed: int) -> Config:
    target_tensors = [StoredTensor(*row) for row in family["tensors"]]
    rng = np.random.default_rng(seed)
    prompt = rng.integers(3, COMMON["vocab_size"], 21).tolist()
    # transformers lets a layer with a window attend to window + 1 keys, because it counts from the key before the
    # query's position. Quire attends to as many keys as the target keeps.
    seen = json.loads(json.dumps(config))
    seen["text_config"]["sliding_window"] -= 1
    results = []
    with tempfile.TemporaryDirectory() as name:
        for dtype in (torch.float32, torch.float64):
            with computing_in(dtype):
                target = load(Path(name) / "target", family["configs"]["published"],
                              readable_numbers(target_tensors, family["seed"]), dtype)
                drafter = load(Path(name) / "drafter", seen, readable_numbers(tensors, seed), dtype)
                results.append(follow(target, drafter, prompt))
                if dtype == torch.float32:
                    check_weights_show(target, drafter, prompt, results[0])
    if results[0] != results[1]:
        raise BadSeed("float32 and float64 differ")
    return {"num_drafts": NUM_DRAFTS, "seed": seed, "max_model_len": 256, "configs": {"published": config},
            "tensors": [[tensor.name, tensor.shape, tensor.mean, tensor.deviation] for tensor in tensors],
            "prompts": [{"ids": prompt, "following": results[0], "logits": {}}],
            "made_with": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(exist_ok=True)
    for name in TARGETS:
        family = json.loads((options.families / f"{name}.json").read_text())
        config = drafter_config(family["configs"]["published"])
        like = next(entry for entry in FAMILIES if entry.name == name)
        with tempfile.TemporaryDirectory() as folder:
            shapes = shapes_of(config, Path(folder))
        tensors = [StoredTensor(tensor, shape, *distribution_of(like, tensor, shape))
                   for tensor, shape in shapes.items()]
        assert not any(re.search(r"k_proj|v_proj|k_norm", tensor.name) for tensor in tensors)
        for seed in range(1, MAX_SEEDS):
            try:
                golden = {"target": name} | golden_of(family, config, tensors, seed)
                break
            except BadSeed as problem:
                print(f"{name}, seed {seed}: {problem}", flush=True)
        else:
            raise RuntimeError(f"{name}: no seed suits")
        write_json(options.output / f"{name}.json", golden)


if __name__ == "__main__":
    main()
