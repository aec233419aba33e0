"""The part of a fetch that runs in a process of its own, so that it can be stopped at its time limit."""

import shutil
import sys
from pathlib import Path

from kbretrieval.model.files import EXPORT, EXPORT_REVISION, FILES

NOT_INSTALLED, NOT_REACHED = 3, 4
OUTCOMES = {
    NOT_INSTALLED: 'the huggingface_hub library is not installed; run: python -m pip install "kbretrieval[bge]"',
    NOT_REACHED: "the hub was not reached, or refused",
}


def main(arguments: list[str]) -> int:
    """Bring both files into the folder that is named, by their own names; returns the exit status.

    They pass through the library's own cache, so that its mirror, proxy and offline settings work, and so that what
    was downloaded before is not downloaded again.
    """
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        return NOT_INSTALLED
    try:
        for file in FILES:
            cached = hf_hub_download(EXPORT, file.hub_path, revision=EXPORT_REVISION)
            shutil.copyfile(cached, Path(arguments[0]) / file.name)
    except Exception as error:  # noqa: BLE001 - the library's own failures have many classes; one line is what helps
        print(f"{OUTCOMES[NOT_REACHED]} ({type(error).__name__})", file=sys.stderr)
        return NOT_REACHED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
