"""Follow-ups: questions and answers that need the tools of the question before them."""

import re
from collections.abc import Iterator, Sequence

from stream.services.chat_request import Message, text_of
from stream.services.wording import LONGEST, REQUEST, WORD

__all__ = ["depended_on"]

AGREES = re.compile(
    r"((yes|yeah|yep|sure|ok|okay|please|of course|absolutely|certainly|definitely|correct|exactly|right"
    r"|(i am|i'm) sure|go (ahead|for it)|please do|(do|try|repeat) (it|that|so)|(all|both) of (it|them)|now"
    r"|(try |and )?again|once more|one more time) )+"
)
"""Consent to what the question before it was about, or the wish to have it again: "Yes, please", "Once more"."""
ADDS = re.compile(
    r"(((and|or|but) )?(what about|how about)|and|or) ((in|at|on|for|from|to) )?((the|my|this|that|next) )?(\S+ ){1,2}"
)
"""A question that adds to the one before it: "And in the kitchen?"."""
ANSWERS = re.compile(
    r"(?!(no|nope|nah|not|never|nothing|nobody|none|thanks|thank|bye|goodbye|hello|hi|good (night|morning|evening))\b)"
    rf"(?!{REQUEST.pattern})(\S+ ){{1,4}}"
)
"""A short answer to a question: "Oslo", "The second one"; no refusal, and no request of its own."""


def depended_on(messages: Sequence[Message]) -> Iterator[str]:
    """The texts whose tools the last question needs: its own, and of a follow-up those before it."""
    for at, message in reversed([*enumerate(messages)]):
        if message.get("role") != "user":
            continue
        text = text_of(message)
        said = "".join(f"{word} " for word in WORD.findall(text[:LONGEST].lower()))
        agrees = AGREES.fullmatch(said)
        if not agrees:
            yield text
        if not (agrees or ADDS.fullmatch(said) or (_is_asked(messages[:at]) and _answers(text, said))):
            return


def _is_asked(before: Sequence[Message]) -> bool:
    """Whether the message before is a question of the assistant's."""
    return bool(before) and before[-1].get("role") == "assistant" and text_of(before[-1]).rstrip().endswith("?")


def _answers(text: str, said: str) -> bool:
    said = said.removesuffix("please ")
    ways = said, said.removeprefix("please "), AGREES.sub("", said, count=1)
    return not text.rstrip().endswith("?") and any(map(ANSWERS.fullmatch, ways))
