"""`python -m quanet` is `quanet`."""

from quanet.cli.main import run

if __name__ == "__main__":
    run()
