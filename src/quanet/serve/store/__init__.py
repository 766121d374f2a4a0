"""What the service remembers: a database (the only place that imports SQLAlchemy) and files by their content."""
