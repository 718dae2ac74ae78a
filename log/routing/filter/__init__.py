"""Route filters: a SQL condition over change rows.

    words, reader, grammar, calls, refused    text to tree, where routes are made; `parse_filter`
    tree, text           the tree, stored as JSON with its route; shown as SQL in messages
    columns, kinds, coerce, bind    checks a tree against column types, and makes the steps to run
    logic, branches, functions, casts, steps    the steps; each makes a column of whole columns
    numbers, decimals, rounding, strings, moments, conversions    what they calculate
    evaluate             a batch of changes to a column of yes and no, where rows are written

Import from the files: nothing is loaded here, so that a task loads no more than it runs.
"""
