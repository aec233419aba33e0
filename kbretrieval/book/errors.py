"""What the notebooks' own code refuses, one class per cause.

Each error shows in a notebook as one line: `_render_traceback_` is the hook that IPython asks first, so a reader meets
the sentence with the command that mends it and not thirty frames of this package.
"""

from typing import ClassVar


class BookError(Exception):
    """Base of all refusals of `kbretrieval.book`; `code` is stable, the message is one Chinese or English sentence.

    Example:
        >>> str(ForeignKernel("换一个内核"))
        'foreign_kernel: 换一个内核'
    """

    code: ClassVar[str] = "book_error"

    def __str__(self) -> str:
        return f"{self.code}: {super().__str__()}"

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class ForeignKernel(BookError):
    """The kernel's interpreter is not the one that the package is installed in."""

    code: ClassVar[str] = "foreign_kernel"


class EditionMismatch(BookError):
    """The notebook and the imported package are of different editions."""

    code: ClassVar[str] = "edition_mismatch"


class UnknownChapter(BookError):
    """No chapter of the table of contents has this number."""

    code: ClassVar[str] = "unknown_chapter"


class FixturesMissing(BookError):
    """The fixtures are neither in the checkout nor in the installed package."""

    code: ClassVar[str] = "fixtures_missing"


class FixtureDigestMismatch(BookError):
    """A fixture's SHA-256 is not the one in the manifest."""

    code: ClassVar[str] = "fixture_digest_mismatch"


class FontUnusable(BookError):
    """The font subset is missing, cannot be read, or is another font."""

    code: ClassVar[str] = "font_unusable"


class PackageMissing(BookError):
    """A package that notebooks need is not installed."""

    code: ClassVar[str] = "package_missing"


class ModelNotReady(BookError):
    """A chapter needs the model and its two files are not there, or not the right ones."""

    code: ClassVar[str] = "model_not_ready"


class MissingGlyph(BookError):
    """A figure of the book's own would show a character that the font has no glyph for (NB-4)."""

    code: ClassVar[str] = "missing_glyph"


class PoorAltText(BookError):
    """An alternative text does not name chart type, axes and conclusion (NB-3)."""

    code: ClassVar[str] = "poor_alt_text"


class PlotDataMismatch(BookError):
    """The data given to a plot do not fit together."""

    code: ClassVar[str] = "plot_data_mismatch"


class SentenceMismatch(BookError):
    """A sentence's placeholders and the values given for it differ (NB-7)."""

    code: ClassVar[str] = "sentence_mismatch"


class ExerciseMalformed(BookError):
    """An exercise has nothing to check the reader's answer with, or no hint."""

    code: ClassVar[str] = "exercise_malformed"


class NotebooksMissing(BookError):
    """No notebook was found where the runner was told to look."""

    code: ClassVar[str] = "notebooks_missing"
