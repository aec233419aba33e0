"""The part of a fetch that runs in a process of its own, so that it can be stopped at its time limit."""

import sys
from pathlib import Path

from kbretrieval.model.files import EXPORT, EXPORT_REVISION, FILES


def main(arguments: list[str]) -> int:
    """Download both files into the folder that is named; the library's mirror and offline settings apply."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        print("the huggingface_hub library is not installed", file=sys.stderr)
        return 3
    try:
        for file in FILES:
            hf_hub_download(EXPORT, file.hub_path, revision=EXPORT_REVISION, local_dir=Path(arguments[0]))
    except Exception as error:  # noqa: BLE001 - the library's own failures have many classes; one line is what helps
        print(f"the hub was not reached or refused ({type(error).__name__})", file=sys.stderr)
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
