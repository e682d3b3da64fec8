"""The exceptions of this package."""


class EquipoiseError(Exception):
    """A run, a comparison, a suite or an analysis is not possible; the message says why, and how to correct it."""


class ScenarioError(EquipoiseError, ValueError):
    """A scenario, or an override of one of its values, is wrong.

    ``line`` and ``column`` count from 1 in the scenario's text; they are None for an override of ``set``, which has no line.
    ``key`` is the wrong key, or the path of the override; None if the text is not valid TOML.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None, key: str | None = None) -> None:
        super().__init__(message, line, column, key)
        self.message = message
        self.line = line
        self.column = column
        self.key = key

    def __str__(self) -> str:
        return self.message
