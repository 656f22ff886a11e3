"""What the pages of a Parquet file say of themselves, before pyarrow believes it.

The head of a page is a PageHeader of parquet.thrift, in Apache Thrift's compact protocol.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

_DEEPEST = 8  # structs and lists within each other; the format has 3
# Numbers of fields: of a PageHeader, and of the struct in it that tells of its kind of page.
_UNPACKED, _PACKED, _KINDS, _VALUES = 2, 3, (5, 7, 8), 1


class Page(NamedTuple):
    """One page of a column, by its own account."""

    unpacked: int  # bytes
    values: int
    is_dictionary: bool


def pages(content: bytes, start: int, size: int) -> Iterator[Page]:
    """The pages of the column that stands at `start` and is `size` bytes long.

    Raises:
      ValueError: no pages, or they are not within it.
    """
    end = start + size
    if not 0 <= start <= end <= len(content):
        raise ValueError("a column is not within the file")
    while start < end:
        head = _Reader(content, start, end)
        fields = head.struct()
        of_kind = [fields[kind] for kind in _KINDS if isinstance(fields.get(kind), dict)]
        unpacked, packed = fields.get(_UNPACKED, -1), fields.get(_PACKED, -1)
        values = of_kind[0].get(_VALUES, -1) if of_kind else 0  # an index page has none
        for number in (unpacked, packed, values):
            if not isinstance(number, int) or number < 0:
                raise ValueError("a page does not tell its size")
        start = head.at + packed
        if start > end:
            raise ValueError("a page is longer than its column")
        yield Page(unpacked, values, _KINDS[1] in fields)


class _Reader:
    """Reads a struct between two places of a file."""

    def __init__(self, content: bytes, at: int, end: int):
        self.content, self.at, self.end = content, at, end

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Its numbers and structs by number of the field; all else is passed over."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if depth == _DEEPEST:
            raise ValueError("the head of a page is too deep")
        if kind in (1, 2):  # true, false
            return None
        if kind == 3:
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == 7:
            return self._skip(8)
        if kind == 8:  # bytes
            return self._skip(self._varint())
        if kind in (9, 10):  # list, set
            head = self._byte()
            of = head & 15
            for _ in range(head >> 4 if head >> 4 < 15 else self._varint()):
                self._byte() if of in (1, 2) else self._value(of, depth + 1)
            return None
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError("the head of a page cannot be read")

    def _byte(self) -> int:
        self._skip(1)
        return self.content[self.at - 1]

    def _skip(self, size: int) -> None:
        self.at += size
        if self.at > self.end:
            raise ValueError("the head of a page is cut off")

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) > 127:
            value |= (byte & 127) << shift
            shift += 7
            if shift > 63:
                raise ValueError("a number in the head of a page is too long")
        return value | byte << shift

    def _integer(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)
