"""Intervals and regions for the estimates of every quantifier; `policy` decides which kind of interval a bag gets."""
