"""A question's wording: its sentences in lower case, with short forms written out and polite phrases left out."""

import re

__all__ = ["LONGEST", "WORD", "plain", "sentences"]

LONGEST = 500
"""Characters of a question that are searched: a spoken request is short."""
SPELLED = str.maketrans({"’": "'", "-": " ", "%": " percent ", "°": " degrees "})
SHORT_FORMS = (
    (re.compile(r"\b(what|who|where|how)s\b"), r"\1 is"),
    (re.compile(r"\b(what|who|where|when|how|which|it|that|there|here|he|she)'s\b"), r"\1 is"),
    (re.compile(r"\b(what|who|how|where|you|we|they)'re\b"), r"\1 are"),
    (re.compile(r"\b(i|you|we|they|it)'d\b"), r"\1 would"),
    (re.compile(r"\b(i|you|we|they)'ve\b"), r"\1 have"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"\b(\w+)n't\b"), r"\1 not"),
)
POLITE = re.compile(
    r"^((please|kindly|hey|hi|hello|ok|okay|alright|um|uh|er|hm|well|so|now|then|and|but|also|just|maybe|perhaps|thanks"
    r"|thank you|good (morning|evening|night)|alexa|siri|google|computer|assistant|jarvis|olly|quickly"
    r"|(would|do) (you|somebody|someone) mind|(would you )?be so (kind|good) as to|are you able to"
    r"|(can|could|would|will) (you|somebody|someone|(we|i)(?! (leave|keep|put an?|wash|use)))"
    r"|you (can|could|may|should)|find out|do not forget to"
    r"|(i )?(am )?(want|wanting|need|needing|would like|would love|trying) (to (know|hear|see)|(you )?to)"
    r"|i would prefer|do me a (favor|favour)( and)?|go (ahead and|and)|(try|remember|able|help me)( to)?|any idea"
    r"|let me know|i (think|guess|wonder|was wondering)|do you (happen to )?(know|think)"
    r"|(tell|telling|remind|ask|help) me( of)?) )*"
)
POLITE_END = re.compile(
    r"((please|thanks|thank you|for me|right now|now|at the moment|currently|again|if you can|if possible|would you|ok"
    r"|okay) )*$"
)
WORD = re.compile(r"(?<!\w)[~.]{0,2}/[\w./-]+|[\w']+(?:\.\w+)*")
SENTENCE_END = re.compile(r"[.?!;:,]+(?=\s|$)|\n+")


def plain(text: str) -> str:
    """The beginning of a text in lower case, with short forms written out.

    >>> plain("What's up?")
    'what is up?'
    """
    text = text[:LONGEST].lower().translate(SPELLED)
    for short, full in SHORT_FORMS:
        text = short.sub(full, text)
    return text


def sentences(text: str) -> list[str]:
    """The sentences and clauses of a text in lower case, with a space after each word, without polite phrases.

    >>> sentences("Good morning! Could you please tell me what's on?")
    ['what is on ']
    """
    parts = ("".join(f"{word} " for word in WORD.findall(part)) for part in SENTENCE_END.split(plain(text)))
    return [left for part in parts if (left := POLITE_END.sub("", POLITE.sub("", part), count=1))]
