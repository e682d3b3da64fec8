"""The exceptions of this package."""


class EquipoiseError(Exception):
    """A run, a comparison, a suite or an analysis is not possible. The message says why and how to correct it."""


class ScenarioError(EquipoiseError, ValueError):
    """A scenario, or an override of one of its values, is wrong.

    ``line`` and ``column`` are a position in the scenario's text, counted from 1. They are None if the error is in an
    override, which is given in the argument ``set``. ``key`` is the wrong key, or the path of the override; it is None
    if the text is not valid TOML.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None, key: str | None = None) -> None:
        super().__init__(message, line, column, key)
        self.message = message
        self.line = line
        self.column = column
        self.key = key

    def __str__(self) -> str:
        return self.message
