"""Writing a report to a file or to stdout: UTF-8, LF, whole or not at all."""

import json
import sys
from pathlib import Path
from typing import Any

from kbretrieval.errors import StorageIOError
from kbretrieval.store.files import replacing


def as_json(value: Any) -> str:
    """Return indented JSON with Chinese left readable and a final line end."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def say(text: str) -> None:
    """Write to stdout at once, so that a reader who went away or a full disk is seen before the command ends."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_report(text: str, output: Path | None) -> None:
    """Write text to `output`, replacing it at once, or to stdout where it is None."""
    if output is None:
        say(text)
        return
    try:
        with replacing(output) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise StorageIOError(f"the report cannot be written (errno {error.errno})") from None
