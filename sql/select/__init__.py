"""SELECT, by DataFusion.

    query           plans and runs a text within its limits; translates what DataFusion says
    session         DataFusion itself, without files and whatever else is not the log's
    taken, complaints   what it takes instead of what was typed; what it says, as our errors
    names           which topic or system table a name means
    python_table    what DataFusion takes for a table made in Python
    topic_table     a topic as a table: its columns, and pages of the log that become rows
    record_columns  what every topic has; value_columns, json_kinds, json_values, avro_values:
                    the columns of its values
    span, pushdown  which partitions, offsets and times a plan needs (pure; from DataFusion's plan)
    system_tables   system.topics and the others, and what they ask of the log

DataFusion is imported in `session` alone, and only when a SELECT comes.
"""
