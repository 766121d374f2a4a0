"""Data: tables, columns, periods, copies of instances, known datasets, synthetic data."""
