"""A random walk over a log's whole public interface, beside a simple model of it.

| question | file |
|---|---|
| What is true of a log? | `world.py`: the model, in plain Python, without files |
| What is done to it? | `steps.py`: random steps, right ones and wrong ones |
| What does a step do to the model? | `oracle.py` |
| Who does it to a real log, and reads all of it back? | `acting.py`, in a child process |
| What is said of a log against what is there? | `comparing.py` |
| What is true after several did something at once? | `together.py` |
"""
