"""Packs documents into rows of ids. Every row starts with a document; its last one may be cut."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain

import numpy as np
from tokenizers import Tokenizer

from documents import Mix, document

Row = tuple[np.ndarray, np.ndarray]  # ids and Loss values, both [length]
_DOCUMENTS_AT_ONCE = 64  # amortizes the cost of a call into the tokenizer


def rows(tokenizer: Tokenizer, rng: random.Random, mix: Mix, length: int) -> Iterator[Row]:
    """Endless rows of `length` ids."""
    ids: list[int] = []
    losses: list[int] = []
    for document_ids, document_losses in _encoded_documents(tokenizer, rng, mix):
        ids += document_ids
        losses += document_losses
        if len(ids) >= length:
            yield np.array(ids[:length], np.int16), np.array(losses[:length], np.int8)
            ids, losses = [], []


def batches(tokenizer: Tokenizer, rng: random.Random, mix: Mix, num_rows: int, length: int) -> Iterator[Row]:
    """Endless batches: ids and Loss values, both [num_rows, length]."""
    stream = rows(tokenizer, rng, mix, length)
    while True:
        ids, losses = zip(*(next(stream) for _ in range(num_rows)))
        yield np.stack(ids), np.stack(losses)


def _encoded_documents(tokenizer: Tokenizer, rng: random.Random, mix: Mix) -> Iterator[tuple[list[int], list[int]]]:
    while True:
        documents = [document(mix, rng) for _ in range(_DOCUMENTS_AT_ONCE)]
        texts = [segment.text for segments in documents for segment in segments]
        encoded = iter(tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        for segments in documents:
            parts = [(next(encoded).ids, int(segment.loss)) for segment in segments]
            yield (list(chain.from_iterable(ids for ids, _ in parts)),
                   list(chain.from_iterable([loss] * len(ids) for ids, loss in parts)))
