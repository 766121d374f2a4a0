"""The laboratory: experiments (plans, cells, the runner, the store) and the catalogue of methods."""
