"""Diagnose an estimate: check the assumptions behind it, and report findings in plain words."""
