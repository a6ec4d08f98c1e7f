"""Images of strangers, decoded in processes that may fail without taking the service along."""
