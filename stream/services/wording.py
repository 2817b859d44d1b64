"""A question's wording: its sentences in lower case, with short forms written out and polite phrases left out."""

import re

__all__ = ["LONGEST", "REQUEST", "WORD", "plain", "requests", "sentences"]

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
QUESTION_END = re.compile(r"[.?!;]+(?=\s|$)|\n+")
REFERS = (
    r"(?:(?!,| and | then ).)* (?:he|she|they|him|them|his|its|their|(?:do|does|did|has|had|were) it"
    r"|(?<!day )(?<!date )was it|is it (?:an?|so|for|from|of|like|made|used|called))\b"
)
"""Matches a question that refers back, such as "what did he invent", but not "what time is it"."""
QUESTION = (
    rf"(?!{REFERS})(?:what|who|whose|when|where|which|how|why|is|are|was|were|do|does|did|can|could|will|would|has"
    r"|have|please|i (?:want|need|would))\b"
)
ORDER = (
    r"(?:(?:activate|add|append|archive|arm|ask|brighten|bring|change|check|close|compare|convert|copy|count|create"
    r"|deactivate|decrease|delete|dim|disable|disarm|draw|enable|explain|find|get|give|help|increase|keep|leave|let"
    r"|lower|make|move|mute|open|pause|ping|play|print|put|raise|read|reboot|recommend|reduce|refresh|remind|remove"
    r"|rename|reset|restart|run|save|say|search|send|set|show|shut|sing|spell|start|stop|switch|take|tell|toggle"
    r"|translate|turn|unlock|wake|warm|write)\b"
    r"|(?:call|charge|clean|cool|heat|light|list|lock|look|order|query)"
    r" (?:the|my|our|all|every|an?|me|up|for|this|that)\b)"
)
"""Verbs; those that are nouns, too, need an article after them: "sound and light waves" has no order."""
REQUEST = re.compile(f"{QUESTION}|{ORDER}")
"""How a question or an order begins."""
AND = r",? (?:and|then|but)"
JOINT = r"(?:%s)(?: (?:then|also|now|just|finally|maybe|after that))* (?=(?:%s) )"
QUESTION_JOINT = re.compile(JOINT % (f"{AND}|,", QUESTION))
ANY_JOINT = re.compile(JOINT % (f"{AND}|,", REQUEST.pattern))
AND_JOINT = re.compile(JOINT % (AND, REQUEST.pattern))
ASKS_OF_DEEDS = re.compile(
    r"(how (do|does|did|can|could|should|would|to|come)|why|what (happens|if|do|does|can|should|is the best)|should"
    r"|explain|describe|define|imagine|discuss|recommend|is it \w+ to)\b"
)
"""Questions that a verb after "and" goes on with: "How do I open the oven and clean it?" does not ask to clean it."""


def plain(text: str) -> str:
    """The beginning of a text in lower case, with short forms written out.

    >>> plain("What's up?")
    'what is up?'
    """
    text = text[:LONGEST].lower().translate(SPELLED)
    for short, full in SHORT_FORMS:
        text = short.sub(full, text)
    return text


def sentences(text: str) -> list[tuple[str, str]]:
    """Sentences and clauses of a text in lower case, a space after each word: without polite phrases, and as said.

    >>> sentences("Good morning! Could you please tell me what's on?")
    [('', 'good morning '), ('what is on ', 'could you please tell me what is on ')]
    """
    parts = ("".join(f"{word} " for word in WORD.findall(part)) for part in SENTENCE_END.split(plain(text)))
    return [(POLITE_END.sub("", POLITE.sub("", part), count=1), part) for part in parts if part]


def requests(text: str) -> list[str]:
    """The parts of a text in lower case that ask something each: its questions and orders, split where "and" joins two.

    >>> requests("Computer. Turn on the light and the fan, and then tell me a joke.")
    ['turn on the light and the fan', 'tell me a joke']
    >>> requests("How do I open the oven and clean it?")
    ['how do i open the oven and clean it']
    """
    asked = list[str]()
    for sentence in (" ".join(part.split()) for part in QUESTION_END.split(plain(text))):
        parts = _joint_of(sentence).split(sentence)
        if len(parts) > 1 or _is_request(sentence):
            asked += parts
    return asked


def _joint_of(sentence: str) -> re.Pattern[str]:
    """Where the sentence may be split: at a comma only after a request, which "Computer, tell me a joke" has not."""
    if ASKS_OF_DEEDS.match(POLITE.sub("", sentence)):
        return QUESTION_JOINT
    return ANY_JOINT if _is_request(sentence) else AND_JOINT


def _is_request(sentence: str) -> bool:
    """Whether a sentence begins as a question or an order, after polite phrases."""
    return REQUEST.match(POLITE.sub("", sentence)) is not None
