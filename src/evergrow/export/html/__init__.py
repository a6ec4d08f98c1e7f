"""One HTML file that answers and learns, without a service and without a network.

:mod:`~evergrow.export.html.page_file` puts the file together: the markup, styles and modules of
``evergrow/page`` with those of ``page``, joined by :mod:`~evergrow.export.html.bundle`; the network
(:mod:`~evergrow.export.html.network`); what the classifier has learnt
(:mod:`~evergrow.export.html.head`); and ONNX Runtime (:mod:`~evergrow.export.html.runtime`).
"""
