"""What may go wrong, by kind: each says what is missing or failed, and what to do."""


class Problem(Exception):
    """Of this runner; its text is for whoever started it."""


class Missing(Problem):
    """A tool that a run needs is not there."""

    def __init__(self, tool, where, get):
        super().__init__(f"{tool} is missing ({where})\nhint: {get}")


class Failed(Problem):
    """A program that ended where it should not have, or with an error."""

    def __init__(self, program, status, text):
        super().__init__(f"`{program}` ended with status {status}: {text.strip()[-400:] or 'without a word'}")


class Unmeasured(Problem):
    """A run whose captures do not hold what is to be measured."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}\nhint: the programs' own words are in its *.log")
