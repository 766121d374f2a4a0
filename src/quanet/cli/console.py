"""Where the command line writes: answers to standard output, problems and progress to standard error."""

from rich.console import Console

console = Console()
problems = Console(stderr=True)
