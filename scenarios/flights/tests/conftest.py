"""Lets the mapping's tests find a Java where none is installed: the wheel's, as everywhere in this project."""

from __future__ import annotations

import os

from migrator.embedded.java import java_home

os.environ["JAVA_HOME"] = str(java_home())
