# SPDX-License-Identifier: Apache-2.0
"""load_sharded: a model in several files, with the index that Hugging Face's
libraries write beside them.

An index is JSON: "weight_map" has the file of each tensor. Like the files it comes
from strangers, so it may only name files in its own folder.
"""
import os
from typing import Any, Callable, Dict, List, Optional, Set

from .._bulk import PIECE, THREADS
from .._errors import Path
from ._header import MAX_HEADER, SafetensorsError, parse_json
from ._load import Only, choice, load_files

_INDEX = ".safetensors.index.json"
_MODEL = ".safetensors"
_USUAL = "model.safetensors"


def load_sharded(path: Path, device: Any = "cpu", *, only: Only = None,
                 framework: Any = None,
                 direct: bool = False, threads: int = THREADS, piece: int = PIECE,
                 progress: Optional[bool] = None) -> Dict[str, Any]:
    """The tensors of a model in several files by name, all files read side by
    side.

    path    the index, such as "model.safetensors.index.json", or a folder that
            has one; in a folder without an index, model.safetensors or the only
            safetensors file is loaded

    Everything else is as for load_file. Tensors that the index does not name are
    loaded too; if a file lacks one that the index names, that is a
    SafetensorsError, before anything is allocated. With `only`, files of which the
    index says that nothing in them is wanted are not opened.
    """
    chosen = choice(only)
    if isinstance(path, int):
        raise TypeError("load_sharded needs a path, not a descriptor")
    name = os.fsdecode(path)
    if os.path.isdir(name):
        name = _only_model(name)
    shards: Dict[str, Set[str]] = {}
    if not name.endswith(_MODEL):
        shards = _shards(name)
        if chosen is not None:
            shards = _wanted(shards, chosen, only, name)
    folder = os.path.dirname(name)
    expected: Dict[Path, Set[str]] = {os.path.join(folder, shard): names
                                      for shard, names in shards.items()}
    files: List[Path] = [name] if name.endswith(_MODEL) else list(expected)
    return load_files(files, device, only=only, framework=framework, direct=direct,
                      threads=threads, piece=piece, progress=progress,
                      expected=expected)


def _only_model(folder: str) -> str:
    """The index, or the safetensors file, of a folder: of several the one that
    transformers takes, as there are variants of it beside."""
    listed = sorted(os.listdir(folder))
    for end, what in ((_INDEX, "indexes"), (_MODEL, "safetensors files and no index")):
        found: List[str] = [name for name in listed if name.endswith(end)]
        if _USUAL in found:
            found = [_USUAL]
        if len(found) == 1:
            return os.path.join(folder, found[0])
        if found:
            raise SafetensorsError(folder, f"has {len(found)} {what}, as "
                                           f"{found[0]!r} and {found[1]!r}")
    raise SafetensorsError(folder, "has neither an index nor a safetensors file")


def _shards(path: str) -> Dict[str, Set[str]]:
    """{file: its tensors}, of an index."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise SafetensorsError(path, "is no regular file")
    with open(path, "rb") as file:
        text = file.read(MAX_HEADER + 1)
    if len(text) > MAX_HEADER:
        raise SafetensorsError(path, f"an index of more than {MAX_HEADER} bytes")
    table = parse_json(text, path, "the index").get("weight_map")
    if not isinstance(table, dict) or not table:
        raise SafetensorsError(path, "the index has no table weight_map")
    shards: Dict[str, Set[str]] = {}
    for tensor, shard in table.items():
        if not _is_name(shard):
            raise SafetensorsError(path, f"tensor {tensor!r}: {shard!r:.80} is no "
                                         "file of the index's folder")
        shards.setdefault(shard, set()).add(tensor)
    return shards


def _wanted(shards: Dict[str, Set[str]], chosen: Callable[[str], bool], only: Only,
            path: str) -> Dict[str, Set[str]]:
    """Those with a chosen tensor."""
    if not callable(only):
        for name in only or ():
            if not any(name in names for names in shards.values()):
                raise SafetensorsError(path, f"tensor {name!r}: is not in the index, "
                                             "but wanted")
    return {shard: names for shard, names in shards.items()
            if any(map(chosen, names))}


def _is_name(value: Any) -> bool:
    return (isinstance(value, str) and value not in ("", ".", "..")
            and "/" not in value and "\0" not in value)
