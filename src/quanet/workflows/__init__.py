"""Questions that people ask of files: the answers as plain data, for the command line and the report."""
