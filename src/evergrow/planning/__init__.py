"""What training will cost, before it is begun."""
