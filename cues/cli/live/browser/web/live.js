// The page of `cues live`: asks, plays what comes, and shows it.
"use strict";

const RATE_HZ = 24000, LATE_S = 0.15, SOON_S = 0.5;
const at = (id) => document.getElementById(id);
const timeline = new Timeline(at("timeline"));
const worker = new Worker("worker.js");
const state = { turn: 0, running: false, open: false, heardS: 0, mixedS: 0, reportedAt: 0, peak: 0, lateS: null,
  error: null, words: [], due: [], cues: new Map(), planned: new Map() };
// For tests and for the console.
window.live = { state, timeline, context: null, player: null, events: [], report: null };

// Sound: the context starts with the first question, because browsers want a gesture.

let starting = null;
const startSound = () => (starting ??= startPlayer());
window.live.startSound = startSound;

async function startPlayer() {
  const context = new AudioContext({ sampleRate: RATE_HZ, latencyHint: "interactive" });
  await context.audioWorklet.addModule("worklet.js");
  const player = new AudioWorkletNode(context, "cues-player", { numberOfInputs: 0, outputChannelCount: [1],
    processorOptions: { depthS: state.bufferMs / 1000 } });
  const frames = new MessageChannel();
  player.port.postMessage({ frames: frames.port1 }, [frames.port1]);
  worker.postMessage({ frames: frames.port2 }, [frames.port2]);
  player.port.onmessage = ({ data }) => takeReport(data);
  player.connect(context.destination);
  Object.assign(window.live, { context, player });
  await context.resume();
}

function takeReport(report) {
  window.live.report = report;
  state.peak = Math.max(state.peak, report.peak);
  state.heardS = report.position / RATE_HZ;
  state.reportedAt = performance.now();
  while (state.due[0]?.atS <= state.heardS) { state.due.shift().word.classList.add("heard"); }
  if (report.state !== "idle") { drawSoon(); }
}

// Pictures of the time axis while sound plays: 25 a second, fewer while pictures wait or frames come late, because sound needs
// the machine. Numbers change less often. An idle or hidden page draws nothing.

let drawing = false, askedAt = 0;

function picture() {
  const now = performance.now();
  const playing = window.live.report?.state === "playing";
  timeline.show(state.heardS + (playing ? Math.min((now - state.reportedAt) / 1000, 0.1) : 0));
  drawing = playing || state.running;
  if (drawing) { setTimeout(askForPicture, Math.max(40, 4 * (performance.now() - askedAt), 2000 * (state.lateS ?? 0))); }
}

function askForPicture() {
  drawing = true;
  askedAt = performance.now();
  requestAnimationFrame(picture);
}

function drawSoon() {
  if (!drawing) { askForPicture(); }
}

setInterval(() => {
  const { report } = window.live;
  if (!report || !state.open) { return; }
  showLevel(state.peak);
  state.peak = 0;
  write("buffer", report.state === "idle" ? "–" : `${Math.round(1000 * report.waitingS)} ms`);
  write("underruns", `${report.underruns}`, report.underruns > 0);
  if (state.lateS === null) { return; }
  const late = `${Math.round(1000 * state.lateS)} ms`, isLate = state.lateS > LATE_S;
  write("late", late, isLate);
  write("connection", isLate ? `the connection lags by ${late}` : "connected");
  at("connection").dataset.state = isLate ? "late" : "open";
  state.lateS *= 0.8;
}, 200);

function write(id, text, isBad = false) {
  const element = at(id);
  if (!element) { return; }
  if (element.textContent !== text) { element.textContent = text; }
  element.classList.toggle("bad", isBad);
}

function showLevel(peak) {
  const level = Math.round(Math.max(FLOOR_DB, 20 * Math.log10(peak + 1e-9)));
  const bar = at("level");
  if (bar.getAttribute("aria-valuenow") === `${level}`) { return; }
  bar.setAttribute("aria-valuenow", level);
  bar.firstElementChild.style.transform = `scaleX(${1 - level / FLOOR_DB})`;
}

// Questions.

async function ask(text, script = 0) {
  if (!state.open || !text.trim()) { return; }
  try {
    await startSound();
  } catch (error) {
    starting = null;
    note(`no sound: ${error.message}`, "error");
    return;
  }
  silence();
  worker.postMessage({ send: { type: "ask", text, script } });
}

// The sound fades out here at once; the server ends the turn when it hears of it.
function silence() {
  window.live.player?.port.postMessage({ stop: state.turn });
}

function interrupt() {
  if (!state.running) { return; }
  silence();
  worker.postMessage({ send: { type: "interrupt" } });
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = at("text").value;
  at("text").value = "";
  ask(text);
});
at("interrupt").addEventListener("click", interrupt);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") { interrupt(); } });

// The conversation as text.

const log = at("log");

// The log stays at its end while it grows, unless its reader has scrolled up.
let isAtEnd = true;
const follow = () => { if (isAtEnd) { log.scrollTop = log.scrollHeight; } };
log.addEventListener("scroll", () => { isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60; });
new MutationObserver(follow).observe(log, { childList: true, subtree: true });
new ResizeObserver(follow).observe(log);

function line(kind, text) {
  at("hint")?.remove();
  const paragraph = document.createElement("p");
  paragraph.className = kind;
  paragraph.textContent = text;
  log.append(paragraph);
  return paragraph;
}

const note = (text, kind = "") => line(`note ${kind}`, text);

function say(delta) {
  if (!state.answer) { state.answer = line("answer", ""); }
  const word = document.createElement("span");
  word.className = "word";
  word.textContent = delta;
  state.answer.append(word);
  state.words.push(word);
}

// A word is heard at `atS`: then it and those before it turn to full ink. Speakers mark words with their own spelling.
function hear(text, atS) {
  const wanted = bare(text);
  for (const start of state.words.keys()) {
    let end = start, joined = "";
    do { joined += bare(state.words[end].textContent); end += 1; } while (joined.length < wanted.length && end < state.words.length);
    if (joined !== wanted) { continue; }
    for (const word of state.words.splice(0, end)) { state.due.push({ word, atS }); }
    return;
  }
}

function bare(text) { return text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, ""); }

// A line for each cue, where it began; its cause is known at the end of the turn. A waiting sound is planned long before: it is
// shown when it comes, if it does.
function showCue(event) {
  const { number, cue, start_s, end_s } = event;
  const known = state.cues.get(number);
  state.planned.delete(number);
  if (end_s !== null && end_s <= start_s) {
    known?.remove();
    state.cues.delete(number);
  } else if (!known && start_s > state.mixedS + SOON_S) {
    state.planned.set(number, event);
    return;
  } else if (!known) {
    state.cues.set(number, Object.assign(note(`♪ ${cue} at ${start_s.toFixed(2)} s`, "cue"), { cue, startS: start_s }));
  }
  timeline.cue(event);
}

function explainCue({ cue, onset_s, delay_ms, cause }) {
  const shown = [...state.cues.values()].find((each) => each.cue === cue && Math.abs(each.startS - onset_s) < 1e-6);
  shown?.append(`, ${Math.round(delay_ms)} ms after ${cause}`);
}

// What happens. Words and cues have their own place in the output; the rest happens where the output is.

const shown = {
  "live.hello": ({ answers, speaker, scripts, problem, buffer_ms }) => {
    state.bufferMs = buffer_ms;
    window.live.player?.port.postMessage({ restart: true });
    timeline.clear();
    Object.assign(state, { turn: 0, mixedS: 0, words: [], due: [], cues: new Map(), planned: new Map() });
    at("answers").textContent = `${answers}; ${speaker}`;
    at("scripts").replaceChildren(...scripts.map(scriptButton));
    const isLive = scripts.length === 0;
    at("text").hidden = at("send").hidden = !isLive;
    write("hint", isLive ? "Ask, and listen." : "Choose a question, and listen. Recordings answer: to ask your own, start cues live with --base-url and --model.");
    setOpen(true);
    if (problem) { note(`pack: ${problem}`, "error"); }
  },
  "live.turn": ({ turn, text, at_s }) => {
    Object.assign(state, { turn, running: true, answer: null, error: null, words: [], due: [], cues: new Map(), planned: new Map() });
    at("interrupt").disabled = false;
    line("you", text);
    timeline.begin(at_s, text);
  },
  "live.note": ({ text }) => { note(text); },
  "live.call": ({ tool_name, at_s }) => { timeline.call(at_s, tool_name); },
  "unmute.tool_call": ({ tool_name, arguments: given, status, at_s }) => {
    timeline.argumentsComplete(at_s, tool_name, status);
    state.answer = null; // now, not at the call's name: the last word before a call comes after the name
    note(`${tool_name}(${given.replace(/^\{\}$/, "")})${status === "ok" ? "" : ` — ${status}`}`, status === "ok" ? "call" : "error");
  },
  "cues.tool_result": ({ tool_name, is_error, at_s }) => {
    timeline.result(at_s, tool_name, is_error);
    note(`${tool_name} ${is_error ? "failed" : "answered"}`, is_error ? "error" : "call");
  },
  "unmute.response.text.delta.ready": ({ delta, at_s }) => { timeline.text(at_s); say(delta); },
  "response.text.delta": ({ delta, at_s }) => { timeline.word(at_s, delta); hear(delta, at_s); },
  "cues.span": showCue,
  "unmute.interrupted_by_vad": ({ at_s }) => { timeline.fault(at_s); note("interrupted"); },
  error: ({ message, at_s }) => { timeline.fault(at_s); state.error = message; note(message, "error"); },
  "live.pack": ({ problem }) => {
    note(problem ? `pack: ${problem}` : "the pack has changed; the next answer has its new sounds", problem ? "error" : "");
  },
  "live.end": ({ at_s, failure, interrupted, cues }) => {
    state.running = false;
    at("interrupt").disabled = true;
    timeline.end(at_s);
    if (!failure && !interrupted) { state.due.push(...state.words.splice(0).map((word) => ({ word, atS: at_s }))); }
    if (failure && failure !== state.error) { note(failure, "error"); }
    cues.forEach(explainCue);
    if (cues.length) { at("delay").textContent = `${Math.round(cues[0].delay_ms)} ms`; }
  },
};

function scriptButton({ title, prompt }, script) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(prompt, Object.assign(document.createElement("small"), { textContent: title }));
  button.addEventListener("click", () => ask(prompt, script));
  return button;
}

// The connection.

function setOpen(open, text = "connected") {
  state.open = open;
  at("connection").dataset.state = open ? "open" : "closed";
  at("connection").textContent = text;
  for (const control of document.querySelectorAll("#text, #send, #scripts button")) { control.disabled = !open; }
  if (!open) { at("interrupt").disabled = true; }
}

worker.onmessage = ({ data }) => {
  if (data.event) {
    window.live.events.push(data.event);
    shown[data.event.type]?.(data.event);
    drawSoon();
  } else if (data.levels) {
    for (const { position, samples, mixed, speech, lateS } of data.levels) {
      timeline.level(position / RATE_HZ, samples / RATE_HZ, mixed, speech);
      state.lateS = Math.max(lateS, state.lateS ?? 0);
      state.mixedS = (position + samples) / RATE_HZ;
    }
    for (const event of state.planned.values()) { if (event.start_s <= state.mixedS) { showCue(event); } }
  } else if (data.closed) {
    if (state.running) { silence(); note("the connection was lost", "error"); }
    if (state.open) { note("a new conversation begins when it is back"); }
    state.running = false;
    setOpen(false, data.reason || "no connection; trying again …");
  }
};
worker.postMessage({ url: new URL("socket", location.href.replace(/^http/, "ws")).href });
