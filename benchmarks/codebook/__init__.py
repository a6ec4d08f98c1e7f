"""Visual codebooks, embeddings and image folders: time by stage.

What the parameters of codebooks do to accuracy is in ``evergrow experiment nips2006``; here are
only the rates that it has not: every object, and SIFT.
"""
