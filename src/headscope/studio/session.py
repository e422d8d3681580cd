"""Who may ask: the secret of the printed address, and the cookie that it is exchanged for."""

import hmac
import secrets
import time
from dataclasses import dataclass, field

LAUNCH_SECONDS = 120.0
"""How long the address that opens a browser is valid. Other users can read it in command lines: see `owner.py`."""


def make_secret() -> str:
    """Return 256 random bits as text."""
    return secrets.token_urlsafe(32)


@dataclass
class Session:
    """The secrets of one start; none of them is written anywhere but in the address that is printed."""

    token: str = field(default_factory=make_secret, repr=False)
    cookie: str = field(default_factory=make_secret, repr=False)
    launch: str = field(default_factory=make_secret, repr=False)  # valid once, and for a moment
    started: float = field(default_factory=time.monotonic)

    def accepts_token(self, word: str) -> bool:
        """Whether a word is the token of the printed address."""
        return _equals(word, self.token)

    def accepts_launch(self, word: str) -> bool:
        """Whether a word is that of the browser which the studio opened; it is accepted once."""
        fresh = time.monotonic() - self.started <= LAUNCH_SECONDS
        accepted = _equals(word, self.launch) and fresh
        if accepted:
            self.launch = make_secret()
        return accepted

    def accepts_cookie(self, word: str) -> bool:
        """Whether a word is the cookie of this start."""
        return _equals(word, self.cookie)


def _equals(word: str, secret: str) -> bool:
    """Compare in a time that does not say how much of it is right."""
    return hmac.compare_digest(word.encode("utf-8", "surrogateescape"), secret.encode())
