"""SQL over HTTP. Statements that move groups or define topics run in the host; a SELECT runs in a
process of its own, which has neither the log nor a token: it asks the host for each read.

    rules           what queries may use
    seen_log        a log with only the topics that a caller may use
    allowed         which statements a caller may send
    shown           an answer as JSON or Arrow, within limits
    query_process   the process's own side: limits itself, runs one query after the other
    asked_log       the log as that process has it: it asks
    frames          what goes over the socket between the two
    child           the host's side of one process; answering: what it may ask
    children        a few of them, started when there is something to do
"""
