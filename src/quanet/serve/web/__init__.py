"""Pages and API of the service."""
