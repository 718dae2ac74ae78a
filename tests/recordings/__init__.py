"""Pictures of the real program for the documents: `make recordings`.

| question | file |
|---|---|
| What runs, and which of its frames are kept? | `__main__.py` |
| A terminal of 80 columns for it | `terminal.py` |
| How do its lines become an SVG, and the other way? | `picture.py` |
"""
