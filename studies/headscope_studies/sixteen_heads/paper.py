"""What Michel et al. (2019) found, in the numbers of their text."""

KINDS = {"RTE": "entailment", "MRPC": "paraphrase", "STS-B": "similarity", "SST-2": "sentiment", "QNLI": "entailment"}
PRUNED, PRUNED_TRANSLATION, COLLAPSE = 40, 20, 60
"""Percent of heads that BERT and the translation model lose without notable loss; and cross heads it cannot lose."""

CROSS = "cross"
FINDINGS = {
    "one head removed": "most heads change the score insignificantly (BLEU on WMT; accuracy of BERT on MNLI)",
    "all heads of a layer but one removed": "one head suffices in most layers; the last encoder–decoder layer of WMT "
    "needs several",
    "pruned by importance": f"{PRUNED_TRANSLATION} % (WMT) and {PRUNED} % (BERT) of heads go without notable loss",
    "pruned at one site": f"beyond {COLLAPSE} % of encoder–decoder heads translation collapses; encoder and decoder "
    "self-attention survive",
    "other data": "effects of heads correlate between two datasets of one task",
    "during training": "important heads are determined early, but not at once",
}
"""By what was done."""
