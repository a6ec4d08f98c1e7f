"""What a workspace keeps on disk: database, vectors, images, manifest and event log.

``layout`` names the files, ``database`` opens the SQLite file whose tables are in ``schema``,
``files`` holds what is too large for it, and ``event_log`` replays what happened.
``store`` joins them into the one value that everything else uses.
"""
