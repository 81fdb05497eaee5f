"""The documents of the project, run as a reader would: see tools/run_documents.py."""
