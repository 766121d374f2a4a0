"""Runs the code blocks of the pages: README, CONTRIBUTING, docs and benchmarks.

A block is a fence with a language, and its language says what happens to it:

- `python` runs, all blocks of a page in one namespace; with `>>>` it is a doctest, which pytest collects by itself;
- `console`: lines that begin with `$ ` are `quanet` commands and run. The lines below are their output and are
  compared, numbers up to their last digits, with `...` for what is left out. `$ echo $?` shows the exit code of a
  command that fails;
- `toml`, `json`, `csv`: a file, whose first line is a comment with its name (`# plan.toml`); it is written. A `python`
  block with such a line is written, too, and runs;
- `text` is output or a diagram. Commands in it must exist.

A page runs in an empty folder, or in a copy of one that `folders.py` makes: `<!-- begins in: reviews -->`. A line
`<!-- run first -->` before a block lets it run before those above it, such as the one that writes the page's files.
What cannot run in a test has a line `<!-- not run: REASON -->` before it; its commands must exist.

`python -m tests.pages docs/how-to/labels.md` runs a page and prints what its commands print.
"""
