"""Jobs: what workers compute for the service, with the workflows of the command line."""
