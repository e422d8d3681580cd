"""What pages of the docs on studies share: verdicts over several models, their tables and figures."""
