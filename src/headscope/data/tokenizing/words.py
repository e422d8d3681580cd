"""Split English text into words and sentences by the rules of the Universal Dependencies treebanks."""

import re
from collections.abc import Sequence

Span = tuple[int, int]

_SHORT = (
    "Mr|Mrs|Ms|Dr|Prof|St|Mt|Ft|Sr|Jr|Hon|Rev|Gen|Col|Lt|Maj|Capt|Sgt|Sen|Rep|Gov|Pres|Inc|Ltd|Corp|Co|Bros|Dept|Univ|"
    "Assn|Ave|Blvd|Rd|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|Mon|Tue|Tues|Wed|Thu|Thur|Thurs|Fri|vs|etc|ect|"
    "approx|est|[Ff]ig|[Ee]d|[Ee]ds|[Vv]ol|pp|viz|cf|al|[Nn]o(?=\\. ?\\d)"
)
_PREFIX = "e|co|re|pre|non|anti|ex|semi|multi|un|mid|pro|post|inter|intra|sub|bi|mini|uni|de|ultra|pseudo|micro|counter"
_NOT = "do|does|did|is|was|were|are|has|have|had|would|could|should|ca|ai|must|need|might|wo"

_WORD = re.compile(
    r"""
      (?:https?://|ftp://|www\.)[^\s<>"'()\[\]]*[\w/=&\#]                  # a web address
    | [\w.+%-]+@[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,}                         # a mail address
    | [a-z\d-]{3,}(?:\.[a-z\d-]{2,})*\.(?:com|org|net|edu|gov|co\.uk|html?|pdf|docx?|xls|jpe?g|exe|txt)\b
    | (?:[:;=][-'^o]?[)(\]\[DPp/\\|*]|<3|[xX]D|\^_*\^|;_;)(?![\w(])        # an emoticon
    | (?:[A-Za-z]\.){2,}                                                    # U.S., e.g.
    | \b(?:SHORT)\.                                                         # Mr., etc.
    | \b[A-Z]\.(?=\s*[A-Z])                                                 # an initial
    | \d{1,2}:\d\d(?::\d\d)?                                                # a time
    | \d{1,4}(?:[/]\d{1,4})+                                                # a date or a fraction
    | \d{3}-\d{3}-\d{4} | \d{3}-\d{4}                                       # a telephone number
    | [+]?\d+(?:[.,]\d+)*(?:st|nd|rd|th|s)\b                                # 1st, 1990s
    | \d+(?:[.,]\d+)*(?=(?:am|pm|a\.m\.|p\.m\.|km|kg|mm|cm|m|k|M|lbs?|ft|in|hrs?|mins?|secs?|GB|MB|KB|Hz|MHz|GHz|mph)\b)
    | \.\d+ | \d+(?:[.,]\d+)*(?![\w])                                       # a number
    | [Cc]an(?=not\b) | [Gg]on(?=na\b) | [Ww]an(?=na\b) | [Gg]ot(?=ta\b) | [Gg]im(?=me\b) | [Ll]em(?=me\b)
    | \b(?i:(?:NOT)(?=nt\b))                                               # do of dont
    | (?i:(?:PREFIX)-[a-z]+)                                                # e-mail, co-operate
    | [^\W_]+?(?=(?i:n['’`]t)\b)                                            # do of don't
    | (?i:n['’`]t\b)
    | ['’`](?i:s|re|ve|ll|d|m|em|til|cause|bout|round)\b                    # 's, 're
    | \w+(?:(?:[.&]|['’](?!(?i:s|re|ve|ll|d|m)\b))\w+)*                    # a word, also AT&T, O'Hara
    | \.{2,} | -{2,} | [!?]+ | \*+ | _+ | =+ | ~+ | '' | `` | ‘‘ | ’’ | <+ | >+ | [#]+
    | \S
    """.replace("SHORT", _SHORT)
    .replace("PREFIX", _PREFIX)
    .replace("NOT", _NOT),
    re.VERBOSE,
)


def split_words(text: str) -> list[Span]:
    """Return the start and end of each word; punctuation marks and clitics (n't, 's) are words.

    >>> text = "Mr. Fox didn't pay $3.50."
    >>> [text[start:end] for start, end in split_words(text)]
    ['Mr.', 'Fox', 'did', "n't", 'pay', '$', '3.50', '.']
    """
    return [match.span() for match in _WORD.finditer(text)]


def split_sentences(words: Sequence[str]) -> list[Span]:
    """Return the first and the past-the-end word of each sentence, which ends after ., ! or ? and closing quotes.

    >>> split_sentences(["Stop", "!", '"', "He", "ran", "."])
    [(0, 3), (3, 6)]
    """
    spans, start, ended = [], 0, False
    for index, word in enumerate(words):
        if ended and word not in _CLOSING:
            spans.append((start, index))
            start, ended = index, False
        ended = ended or word == "." or (word != "" and not word.strip("!?"))
    return [*spans, (start, len(words))] if words else []


_CLOSING = frozenset(('"', "'", "''", "”", "’", "’’", ")", "]", ".", "!", "?"))
