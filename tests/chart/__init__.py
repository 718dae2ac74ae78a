"""The chart: what it gives for some sets of values.

Tests of `make test` read what was rendered before (`golden/`), so they need no helm. `make helm`
has one, and says when the chart gives something else by now; `make helm ARGS=--write` keeps that.
"""
