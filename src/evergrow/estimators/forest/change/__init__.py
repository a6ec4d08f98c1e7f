"""From one fitted forest to the next: grow, add samples, forget, relabel, evict."""
