"""What can be asked of the service, by subject."""
