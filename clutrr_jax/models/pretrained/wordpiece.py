"""Text -> the numbers of word pieces, as BERT's own vocabulary has them (Devlin et al. 2018)."""

import string
import unicodedata
from pathlib import Path

from clutrr_jax.models.pretrained.folder import read_json
from generator.errors import InputError, at

UNKNOWN_PIECE, FIRST, LAST, HIDDEN = "[UNK]", "[CLS]", "[SEP]", "[MASK]"
LONGEST_WORD = 100  # a longer one is unknown


class WordPiece:
    """Words are split at spaces and around punctuation; each word is then the longest piece of the
    vocabulary that it begins with, followed by those that continue it (written `##piece`)."""

    def __init__(self, vocabulary: dict[str, int], lower: bool):
        self.vocabulary = vocabulary
        self.lower = lower
        self._known: dict[str, list[int]] = {}  # stories repeat their words

    def __call__(self, text: str) -> list[int]:
        """The pieces of the text, without the marks of its first and last token."""
        pieces: list[int] = []
        for chunk in text.split(" "):
            if chunk not in self._known:
                words = self._words(chunk)
                self._known[chunk] = [piece for word in words for piece in self._pieces(word)]
            pieces += self._known[chunk]
        return pieces

    def _words(self, text: str) -> list[str]:
        apart = ""
        for char in text:
            kind = unicodedata.category(char)
            if char in "\t\n\r" or kind == "Zs":
                apart += " "
            elif kind[0] != "C" and char != "\ufffd":
                apart += f" {char} " if _is_ideograph(char) else char
        if self.lower:  # and without accents
            apart = unicodedata.normalize("NFD", apart.lower())
            apart = "".join(char for char in apart if unicodedata.category(char) != "Mn")
        return "".join(f" {char} " if _is_punctuation(char) else char for char in apart).split()

    def _pieces(self, word: str) -> list[int]:
        if len(word) > LONGEST_WORD:
            return [self.vocabulary[UNKNOWN_PIECE]]
        pieces: list[int] = []
        start = 0
        while start < len(word):
            sign = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self.vocabulary.get(sign + word[start:end])
                if piece is not None:
                    break
            else:
                return [self.vocabulary[UNKNOWN_PIECE]]
            pieces.append(piece)
            start = end
        return pieces


def _is_punctuation(char: str) -> bool:
    """Also signs such as $ and ^, which Unicode does not count as punctuation."""
    return char in string.punctuation or unicodedata.category(char)[0] == "P"


def _is_ideograph(char: str) -> bool:
    """Chinese characters are words of their own."""
    return unicodedata.name(char, "").startswith("CJK ") and unicodedata.category(char) == "Lo"


def read_wordpiece(folder: Path, size: int) -> WordPiece:
    """The vocabulary of `tokenizer.json`, or of `vocab.txt`, one piece on each line; whether words
    are lower-cased is said in the first, or beside the second in `tokenizer_config.json`.

    Args:
      folder: a Hugging Face folder.
      size: how many pieces the encoder knows.
    Raises:
      InputError: neither is there, or it is damaged or no vocabulary of such an encoder.
    """
    path = folder / "tokenizer.json"
    if path.exists():
        values = read_json(path)
        model, normalizer = values.get("model"), values.get("normalizer")
        vocabulary = model.get("vocab") if isinstance(model, dict) else None
        if not isinstance(vocabulary, dict):
            raise InputError(f"{at(path)}: expected the vocabulary of a WordPiece model")
        lower = isinstance(normalizer, dict) and bool(normalizer.get("lowercase"))
    else:
        path = folder / "vocab.txt"
        settings = folder / "tokenizer_config.json"
        lower = not settings.exists() or bool(read_json(settings).get("do_lower_case", True))
        try:
            lines = path.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{at(path)}: cannot be read ({error}), expected tokenizer.json or vocab.txt"
            ) from None
        vocabulary = {piece.rstrip("\r"): number for number, piece in enumerate(lines) if piece}
    for piece in (UNKNOWN_PIECE, FIRST, LAST, HIDDEN):
        if piece not in vocabulary:
            raise InputError(f'{at(path)}: no piece "{piece}", expected a vocabulary of BERT')
    if not all(isinstance(n, int) and 0 <= n < size for n in vocabulary.values()):
        raise InputError(f"{at(path)}: more pieces than the {size} of config.json's vocab_size")
    return WordPiece(vocabulary, lower)
