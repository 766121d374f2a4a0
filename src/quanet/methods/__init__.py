"""The quantification methods, one family a file."""
