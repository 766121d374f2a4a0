"""The quantification methods, one family a file; `quanet.catalogue` lists them all."""
