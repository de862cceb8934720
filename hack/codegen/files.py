"""What the parts of the generator share: where the checkout is, and which files are stale."""

from collections.abc import Mapping
from pathlib import Path

__all__ = ("ROOT", "stale_files")

ROOT = Path(__file__).parents[2]


def stale_files(folder: Path, pattern: str, wanted: Mapping[Path, str]) -> list[Path]:
    """Files that are missing, differ, or match `pattern` in `folder` without being wanted."""
    differing = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    return sorted({*differing, *(path for path in folder.glob(pattern) if path not in wanted)})
