"""The HTML report: one file that needs no network, no server and no other program.

`data` says what a page shows, `sources` where that comes from, and `document` writes it. What is
of the user's program is escaped by the templates; what goes into a picture or a table's data has
a module of its own: `snippets`, `tapes`, `charts`, `images`, `rows`.
"""
