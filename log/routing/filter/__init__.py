"""Route filters: a SQL condition over change rows.

    words, parse     text to tree, with every mistake pointed at: where routes are made
    tree, text       the tree: stored as JSON, shown as SQL
    bind             checks a tree against column types, once, and gives the steps to run
    kinds, coerce    which types go together, and as what
    logic, numbers, strings, moments, casts, functions    the steps: whole Arrow columns
    evaluate         a batch of changes to a column of yes and no: where rows are written

Import from the files; nothing is loaded here, so that a task loads no more than it runs.
"""
