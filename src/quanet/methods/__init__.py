"""The quantification methods, one family a file; `catalogue()` lists them all."""

from quanet.methods.listing import catalogue as catalogue
