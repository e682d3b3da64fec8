"""The progress bar that is shown for ``progress=True``."""

import sys

_WIDTH = 40


class Bar:
    """A progress bar on standard error, if this is a terminal. The bar is removed when the share reaches 1."""

    def __init__(self) -> None:
        self._shown = ""

    def __call__(self, share: float) -> None:
        if not sys.stderr.isatty():
            return
        done = round(share * _WIDTH)
        bar = f"simulated [{'=' * done}{' ' * (_WIDTH - done)}] {share:4.0%}" if share < 1 else ""
        if bar != self._shown:
            sys.stderr.write("\r" + (bar or " " * len(self._shown) + "\r"))
            sys.stderr.flush()
            self._shown = bar
