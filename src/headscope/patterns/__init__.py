"""Classes of attention patterns (Kovaleva et al., 2019), and classifiers for them."""

CLASSES = ("vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous")
LETTERS = {"vertical": "V", "diagonal": "D", "vertical_diagonal": "V+D", "block": "B", "heterogeneous": "H"}
NAMES = {name: name.replace("vertical_diagonal", "vertical + diagonal") for name in CLASSES}
