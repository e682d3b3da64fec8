"""The errors of the programs in this folder. Each error says what is missing or has failed, and what to do."""


class Problem(Exception):
    """An error whose text is printed for the user."""


class Missing(Problem):
    """A tool that a test run needs is missing."""

    def __init__(self, tool, where, get):
        super().__init__(f"{tool} is missing ({where})\nhint: {get}")


class Failed(Problem):
    """A program ended too early, or with an error."""

    def __init__(self, program, status, text):
        super().__init__(f"`{program}` ended with status {status}: {text.strip()[-400:] or 'without a word'}")


class Unmeasured(Problem):
    """The captures of a run do not contain the required packets."""

    def __init__(self, what, where):
        super().__init__(f"{what} in {where}\nhint: the programs' own words are in its *.log")
