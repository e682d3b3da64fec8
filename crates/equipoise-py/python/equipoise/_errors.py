"""What goes wrong."""


class EquipoiseError(Exception):
    """A run, a comparison, a suite or an analysis is not possible; the message says why and what would be right."""


class ScenarioError(EquipoiseError, ValueError):
    """A scenario is wrong, or a value that is set in it.

    ``line`` and ``column`` count from 1 in the scenario's text; they are None for a value that ``set`` gives, which has no line.
    ``key`` is the key that is wrong, or the path of the override; None if the text is no TOML.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None, key: str | None = None) -> None:
        super().__init__(message, line, column, key)
        self.message = message
        self.line = line
        self.column = column
        self.key = key

    def __str__(self) -> str:
        return self.message
