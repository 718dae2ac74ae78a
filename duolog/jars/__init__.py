"""Jars from a Maven repository: from a cache, else fetched once by the Ivy that PySpark ships.

    DUOLOG_CACHE          the cache; otherwise ~/.cache/duolog
    DUOLOG_MAVEN_URL      a repository to use in place of Maven Central
    DUOLOG_IVY_SETTINGS   an Ivy settings file, where a mirror needs more than an address, such as
                          a password
    HTTPS_PROXY, HTTP_PROXY, NO_PROXY     as other programs take them; a name and a password too
    JAVA_HOME             the Java to use; otherwise the one in PATH

A machine without a network needs a copy of the cache of one that has it.
"""

from __future__ import annotations

from duolog.jars.cache import cache_folder
from duolog.jars.fetch import fetch, fetch_jars
from duolog.jars.java import find_java
from duolog.jars.module import Module, Progress

__all__ = ["Module", "Progress", "cache_folder", "fetch", "fetch_jars", "find_java"]
