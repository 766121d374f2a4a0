"""The service: projects, batches, labels and alarms, as pages and an API (the only place that imports FastAPI)."""
