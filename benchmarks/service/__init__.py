"""What the service must show: that nothing is lost, how fast it is and what it withstands.

``python -m benchmarks service --only NAME`` measures one part.
"""
