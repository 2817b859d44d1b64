"""Streams made from the grammar: calls in every dialect among text of every kind, with what must come out."""

# ruff: noqa: E501, ARG005  (a table reads best a row a line, and its functions have one signature)

import json
import random

SECRET = "SECRET"  # stands in every argument: it must never be spoken

PROSE = (
    "One moment, I will look at that.", "If a < b and b < c, then a < c; I <3 it.", "Déjà vu — voilà ☔️!", "好的，我来查一下。",
    "The set {1, 2, 3} and the interval [0, 1).", "See [the docs](https://example.org/a_(b)) and [1], [x].",
    "Use a <div> with a <span>, then </div>; List<Int> and f<T>(x).", 'Press `{` or `<tool_call>{"name": "x"` there.',
    "The `[TOOL_CALLS]` marker, **bold** and _em_.", "# Heading\n\n- one\n- two\n\n| a | b |\n|---|---|\n",
    '```python\ncfg = {"name": "x", "arguments": {"a": 1}}\nprint(cfg)\n```', '```json\n{"title": "Soup"}\n```',
    '```html\n<tool_call>{"name": "x", "arguments": {}}</tool_call>\n```',
    "$\\frac{a}{b} = \\left\\{ x \\mid x_{1} \\right\\}$ and \\begin{align} a &= b \\end{align}",
    '<p class="x">Hello <b>you</b></p><!-- note -->', "for (i = 0; i < n; i++) { a[i] = {x: 1}; }",
    'A record could be {"name": "Alice", "age": 30} in JSON.', '{"level": "info", "call": {"name": "f", "arguments": {}}}',
    "Hermes wraps a call in <tool_call> tags, between <tool_call> and </tool_call> tags.", "A tag is called <tools> or <tool_bar>.",
    "[section(2)] is closed.", "Nothing functools.wraps cannot do.", "\"Quoted,\" she said; it's fine...",
)  # fmt: skip

VALUES = (
    SECRET, f'{SECRET} "quoted" }} ] line', f"{SECRET}\nsecond <b>line</b>", f"冷たい {SECRET} ☔️", f"{{{SECRET}}}", 7, -2.5, True, None,
    [1, [SECRET], {}], {"deep": {SECRET: [1, 2]}}, f"`{SECRET}` \\ back", "",
)  # fmt: skip
TEXTS = tuple(value for value in VALUES if isinstance(value, str) and value and not value.startswith("\n"))


def _json(name, arguments, rng):
    indent = rng.choice((None, None, 2))
    key = rng.choice(("arguments", "parameters"))
    members = [("name", name), (key, arguments if rng.random() < 0.8 else json.dumps(arguments))]
    if rng.random() < 0.2:
        members.reverse()
    return json.dumps(dict(members), ensure_ascii=rng.random() < 0.5, indent=indent)


def _literal(value, rng):
    return repr(value) if rng.random() < 0.5 else json.dumps(value, ensure_ascii=False)


def _keywords(arguments, rng):
    return ", ".join(f"{key}={_literal(value, rng)}" for key, value in arguments.items())


def _parameters(arguments, form):
    return "".join(form.format(key, value) for key, value in arguments.items())


def _braces(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_braces(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_braces, value)) + "]"
    return f"<escape>{value}<escape>" if isinstance(value, str) else json.dumps(value)


# How each dialect writes a call; those in TAGGED know text values only.
DIALECTS = {
    "hermes": lambda n, a, r: f"<tool_call>\n{_json(n, a, r)}\n</tool_call>",
    "hermes unclosed": lambda n, a, r: f"<tool_call>{_json(n, a, r)}",
    "longcat": lambda n, a, r: f"<longcat_tool_call>{_json(n, a, r)}</longcat_tool_call>",
    "bare": _json,
    "openai": lambda n, a, r: json.dumps({"id": "", "type": "function", "function": {"name": n, "arguments": a}}),
    "wrapper": lambda n, a, r: json.dumps({"tool_calls": [{"name": n, "arguments": a}]}),
    "array": lambda n, a, r: f"[{_json(n, a, r)}]",
    "name tag": lambda n, a, r: (
        f"<{(tag := r.choice(('tool_use', 'tool_call', 'function_call', 'tool')))}>\n<name>{n}</name>\n<arguments>{json.dumps(a)}</arguments>\n</{tag}>"
    ),
    "fence": lambda n, a, r: f"```{r.choice(('', 'json', 'tool_call'))}\n{_json(n, a, r)}\n```",
    "mistral old": lambda n, a, r: f"[TOOL_CALLS] [{_json(n, a, r)}]",
    "mistral new": lambda n, a, r: f"[TOOL_CALLS]{n}{r.choice(('[ARGS]', ''))}{json.dumps(a)}",
    "llama tag": lambda n, a, r: f"<|python_tag|>{_json(n, a, r)}<|eom_id|>",
    "llama call": lambda n, a, r: f"<|python_tag|>{n}.call({_keywords(a, r)})<|eom_id|>",
    "function": lambda n, a, r: f"<function={n}>{json.dumps(a)}</function>",
    "pythonic": lambda n, a, r: f"[{n}({_keywords(a, r)})]",
    "deepseek 3": lambda n, a, r: (
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>{n}\n```json\n{json.dumps(a)}\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
    ),
    "deepseek 3.1": lambda n, a, r: (
        f"<|tool_calls_begin|><|tool_call_begin|>{n}<|tool_sep|>{json.dumps(a)}<|tool_call_end|><|tool_calls_end|>"
    ),
    "kimi": lambda n, a, r: (
        f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{n}:0<|tool_call_argument_begin|>"
        f"{json.dumps(a)}<|tool_call_end|><|tool_calls_section_end|>"
    ),
    "granite": lambda n, a, r: f"<|tool_call|>[{_json(n, a, r)}]",
    "phi": lambda n, a, r: f"functools[{_json(n, a, r)}]",
    "jamba": lambda n, a, r: f"<tool_calls>[{_json(n, a, r)}]</tool_calls>",
    "nemotron": lambda n, a, r: f"<TOOLCALL>[{_json(n, a, r)}]</TOOLCALL>",
    "internlm": lambda n, a, r: f"<|action_start|><|plugin|>{_json(n, a, r)}<|action_end|>",
    "lfm": lambda n, a, r: f"<|tool_call_start|>[{n}({_keywords(a, r)})]<|tool_call_end|>",
    "olmo": lambda n, a, r: f"<function_calls>\n{n}({_keywords(a, r)})\n</function_calls>",
    "command": lambda n, a, r: (
        f"<|START_ACTION|>[\n{json.dumps({'tool_name': n, 'parameters': a})}\n]<|END_ACTION|>"
    ),
    "gemma": lambda n, a, r: f"<start_function_call>call:{n}{_braces(a)}<end_function_call>",
    "gemma 4": lambda n, a, r: f"<|tool_call>call:{n}{_braces(a)}<tool_call|>".replace("<escape>", '<|"|>'),
    "gemma alone": lambda n, a, r: f"call:{n}{_braces(a)}",
    "apertus": lambda n, a, r: f"<|tools_prefix|>[{json.dumps({n: a})}]<|tools_suffix|>",
    "tag": lambda n, a, r: f"<tool>{json.dumps({'name': n, 'arguments': a})}</tool>",
    "functioncall": lambda n, a, r: f"<functioncall {json.dumps({'name': n, 'arguments': a})}>",
    "qwen": lambda n, a, r: (
        f"<tool_call>\n<function={n}>\n" + _parameters(a, "<parameter={}>\n{}\n</parameter>\n") + "</function>\n</tool_call>"
    ),
    "seed": lambda n, a, r: (
        f"<seed:tool_call><function={n}>" + _parameters(a, "<parameter={}>{}</parameter>") + "</function></seed:tool_call>"
    ),
    "glm": lambda n, a, r: (
        f"<tool_call>{n}\n" + _parameters(a, "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n") + "</tool_call>"
    ),
    "minimax": lambda n, a, r: (
        f'<minimax:tool_call><invoke name="{n}">' + _parameters(a, '<parameter name="{}">{}</parameter>')
        + "</invoke></minimax:tool_call>"
    ),
    "dsml": lambda n, a, r: (
        f'<｜DSML｜function_calls><｜DSML｜invoke name="{n}">'
        + _parameters(a, '<｜DSML｜parameter name="{}" string="true">{}</｜DSML｜parameter>')
        + "</｜DSML｜invoke></｜DSML｜function_calls>"
    ),
}  # fmt: skip
TAGGED = frozenset({"qwen", "seed", "glm", "minimax", "dsml"})


def _word(rng, extra="-."):
    """A name that no model has."""
    return "".join(rng.choice("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789" + extra) for _ in range(rng.randint(3, 12)))


def _decoration(rng):
    """What stands before a tag's word and after it."""
    word = _word(rng)
    return rng.choice((
        (f"{word}:", ""), (f"{word}_", ""), (f"{word}|", ""), (f"<｜{word}｜"[1:], ""), (f"|{word}|", ""), (f"｜｜{word}｜｜", ""), (f"‖{word}‖", ""), (f"｜{word}｜ ", ""), ("", f":{word}"),
    ))  # fmt: skip


def _block(name, arguments, rng, body):
    """A block of decorated tags, maybe in another block; `body` writes what is in it."""
    before, after = _decoration(rng)
    word, line = rng.choice(("tool_call", "function_call")), rng.choice(("", "\n"))

    def tag(text, closing="", rest=""):
        return f"<{closing}{before}{text}{after}{rest}>"

    inside = tag(word) + line + body(name, arguments, tag, line) + line + tag(word, "/")
    return f"{tag(word + 's')}{line}{inside}{line}{tag(word + 's', '/')}" if rng.random() < 0.5 else inside


def _invoke(name, arguments, tag, line):
    values = line.join(
        tag("parameter", "", f' name="{key}"') + value + tag("parameter", "/") for key, value in arguments.items()
    )
    return tag("invoke", "", f' name="{name}"') + line + values + line + tag("invoke", "/")


def _keyed(name, arguments, tag, line):
    values = (tag("arg_key") + key + tag("arg_key", "/") + line + tag("arg_value") + value + tag("arg_value", "/")
              for key, value in arguments.items())  # fmt: skip
    return name + line + line.join(values)


def _separated(name, arguments, rng):
    lead = f"]{rng.choice(('<]', '>', '{|', ']['))}{_word(rng, '-')}{rng.choice(('[>', '|', '}>', '<'))}["
    values = "".join(f"{lead}<{key}>{value}{lead}</{key}>" for key, value in arguments.items())
    return f'{lead}<tool_call>\n{lead}<invoke name="{name}">{values}{lead}</invoke>\n{lead}</tool_call>'


def _pair(name, arguments, rng):
    call, part = f"{_word(rng)}_call", _word(rng)
    values = "".join(
        f"<|{part}:start|>{key}<|{part}:value|>{value}<|{part}:end|>\n" for key, value in arguments.items()
    )
    return f"<|{call}:{rng.choice(('start', 'begin'))}|>{name}\n{values}<|{call}:end|>"


def _begun(name, arguments, rng):
    word = _word(rng)
    before, after = rng.choice(((f"{word}:", f":{word}"), ("", "")))
    kind = rng.choice(("tool_request", "tool_call", "function_call"))

    def token(text):
        return f"<|{before}{text}{after}|>"

    middle = rng.choice(("", f"<|{word}:form|>json<|{word}:body|>"))
    inside = (
        f"{token(f'begin_{kind}')}{token('begin_tool_name')}{name}{token('end_tool_name')}{token('begin_tool_arguments')}{middle}"
        f"{json.dumps(arguments)}{token('end_tool_arguments')}{token(f'end_{kind}')}"
    )
    return f"{token(f'begin_{kind}s')}{inside}{token(f'end_{kind}s')}"


def make_thought(rng):
    """A block of reasoning that nobody has listed, and the text in it."""
    before, after = _decoration(rng)
    word, token = rng.choice(("think", "thinking", "think_" + _word(rng, ""))), _word(rng)
    return rng.choice((
        (f"<{before}{word}{after}>", f"</{before}{word}{after}>"), (f"<|{token}_think:start|>", f"<|{token}_think:end|>"),
        (f"<|{token}:begin_think:{token}|>", f"<|{token}:end_think:{token}|>"), ("◁think▷", "◁/think▷"),
    ))  # fmt: skip


# Families of markers, with names that do not exist.
FAMILIES = {
    "decorated invoke": lambda n, a, r: _block(n, a, r, _invoke),
    "decorated keys": lambda n, a, r: _block(n, a, r, _keyed),
    "decorated json": lambda n, a, r: _block(n, a, r, lambda n, a, tag, line: json.dumps({"name": n, "arguments": a})),
    "separated": _separated,
    "pair": _pair,
    "begun": _begun,
    "channel": lambda n, a, r: (
        f'<|open|>tools<|sep|><|open|>call tool="{n}"<|sep|>'
        + "".join(f'<|open|>argument key="{key}" type="string"<|sep|>{value}<|close|>argument<|sep|>' for key, value in a.items())
        + "<|close|>call<|sep|><|close|>tools<|sep|>"
    ),
    "message": lambda n, a, r: f"<|message_model|>{n}<|content_invoke_tool_json|>{json.dumps({'name': n, 'args': a})}<|end_message|>",
    "function name": lambda n, a, r: f'<function name="{n}">' + _parameters(a, '<param name="{}">{}</param>') + "</function>",
    "flowers": lambda n, a, r: f"✿FUNCTION✿: {n}\n✿ARGS✿: {json.dumps(a)}",
    "mcp": lambda n, a, r: (
        f"<use_mcp_tool>\n<server_name>{_word(r)}</server_name>\n<tool_name>{n}</tool_name>\n<arguments>\n{json.dumps(a)}\n</arguments>\n"
        "</use_mcp_tool>"
    ),
    "label": lambda n, a, r: f"{r.choice(('**Tool Call:**', 'Tool call:', 'Action:', '-> tool/function_call'))}\n{_json(n, a, r)}",
}  # fmt: skip
DIALECTS |= FAMILIES
TAGGED |= {"decorated invoke", "decorated keys", "separated", "pair", "channel", "function name"}


def make_call(rng: random.Random, name: str, dialect: str) -> tuple[str, dict]:
    """One call as the dialect writes it, and the event that must come of it."""
    values = TEXTS if dialect in TAGGED else VALUES
    arguments = {f"k{number}": rng.choice(values) for number in range(rng.randint(1, 3))}
    arguments["k0"] = SECRET
    return DIALECTS[dialect](name, arguments, rng), {"type": "tool_call", "name": name, "arguments": arguments}


def make_stream(rng: random.Random) -> tuple[str, list[dict]]:
    """A whole answer: text and calls on lines of their own, and its events."""
    parts, expected = [], []
    for number in range(rng.randint(1, 5)):
        if rng.random() < 0.5:
            text = rng.choice(PROSE)
            parts.append(text)
            expected.append({"type": "text", "text": text + "\n"})
        else:
            text, event = make_call(rng, f"tool_{number}", rng.choice(list(DIALECTS)))
            parts.append(text)
            expected.append(event)
    if rng.random() < 0.2:
        parts[0] = f'<think>I may call {{"name": "x", "arguments": {{}}}} or {SECRET}.</think>\n' + parts[0]
    return "\n".join(parts) + "\n", expected


def make_member(rng: random.Random) -> tuple[str, list[dict]]:
    """Prose on both sides of a member of a family that has never been seen."""
    before, after = rng.choice(PROSE), rng.choice(PROSE)
    opener, closer = make_thought(rng) if rng.random() < 0.2 else ("", "")
    if opener:
        text, inside = f"{opener}{SECRET}, and {rng.choice(TEXTS)}{closer}\n", []
    else:
        text, event = make_call(rng, f"tool_{_word(rng, '')}", rng.choice(list(FAMILIES)))
        inside = [event]
    return f"{before}\n{text}\n{after}\n", [
        {"type": "text", "text": before + "\n"}, *inside, {"type": "text", "text": "\n" + after + "\n"},
    ]  # fmt: skip


def make_soup(rng: random.Random, fragments: list[str]) -> str:
    """Markers and pieces of bodies in any order."""
    return "".join(rng.choice(fragments) for _ in range(rng.randint(1, 25)))
