# SPDX-License-Identifier: Apache-2.0
"""Importing this module makes the helpers in the folders beside it importable by their names."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = sorted(str(folder) for folder in HERE.iterdir() if any(folder.glob("*.py")))
