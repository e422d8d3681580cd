"""The five shapes of attention maps (Kovaleva et al., 2019)."""

CLASSES = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
LETTERS = {"vertical": "V", "diagonal": "D", "vertical_diagonal": "V+D", "block": "B", "heterogeneous": "H"}
NAMES = {name: name.replace("vertical_diagonal", "vertical + diagonal") for name in CLASSES}
