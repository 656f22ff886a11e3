"""Writes a tiny language model with random weights: `python tiny_model.py PROMPTS FOLDER`.

Its tokens are trained on the prompts. Runs in the environment of the harnesses.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

END = "<end>"
CHAT = (
    "{% for message in messages %}<{{ message.role }}>{{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)

if __name__ == "__main__":
    prompts, folder = sys.argv[1:]
    lines = Path(prompts).read_text().splitlines()
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    bpe.train_from_iterator(
        [json.loads(line)["prompt"] for line in lines],
        trainers.BpeTrainer(vocab_size=600, special_tokens=[END], initial_alphabet=alphabet),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, eos_token=END, pad_token=END, chat_template=CHAT
    )
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1,
             "num_attention_heads": 2, "max_position_embeddings": 2048,
             "initializer_range": 1.0}  # fmt: skip
    end = tokenizer.eos_token_id
    config = LlamaConfig(vocab_size=len(tokenizer), eos_token_id=end, pad_token_id=end,
                         bos_token_id=end, **sizes)  # fmt: skip
    tokenizer.save_pretrained(folder)
    LlamaForCausalLM(config).save_pretrained(folder)
