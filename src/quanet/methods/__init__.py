"""The quantification methods, one family a file; `quanet.lab.catalogue` lists them all."""
