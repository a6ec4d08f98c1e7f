"""Labels of two levels: columns of input, labels of samples, and the tree of classes."""
