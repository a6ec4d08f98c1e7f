"""A machine-learning back end for Label Studio, over the workspace that is served.

Label Studio is the source of truth for what its annotators decided, and its messages may be lost,
repeated or late. A webhook is therefore only a hint: the synchroniser reads the task from Label
Studio's API and brings the workspace to the same state. The same code runs over all tasks at the
start, periodically, and when it is asked to.

``labelling_config`` reads the classes from a project, ``annotations`` the label of a task,
``messages`` what Label Studio sends. ``api`` is the client of Label Studio, and ``task_images``
fetches and embeds images. ``claims`` knows which task taught which example; it is read from the
audit log. ``reconciliation`` compares tasks with claims, ``synchroniser`` is the thread that
decides when. ``predictions`` makes pre-annotations, and ``ranking`` says which task to label next.
``back_end`` holds all of them; start reading there. The routes are in
``service/http/routes/label_studio``, and ``service/http/label_studio`` is what they learn with.
"""
