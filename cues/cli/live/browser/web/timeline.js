// The time axis of `cues live`: what the model sent, words, cues and levels, each at its place in the output.
"use strict";

const FLOOR_DB = -60, WORD_ROWS = 2, KEPT_FRAMES = 15000;  // 5 minutes of levels
const decibels = (rms) => Math.max(FLOOR_DB, 20 * Math.log10(rms + 1e-9));

class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
    this.colors();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.colors());
    new ResizeObserver(() => this.draw()).observe(canvas);
    canvas.addEventListener("pointerdown", (event) => {
      const from = event.clientX, back = this.back;
      const move = ({ clientX }) => { this.back = Math.max(0, back + (clientX - from) / this.pxPerS); this.draw(); };
      canvas.setPointerCapture(event.pointerId);
      canvas.addEventListener("pointermove", move);
      for (const end of ["pointerup", "pointercancel"]) {
        canvas.addEventListener(end, () => canvas.removeEventListener("pointermove", move), { once: true });
      }
    });
  }

  clear() {
    this.now = 0;  // heard so far, s of output
    this.back = 0;  // how far the view was dragged into the past, s
    this.turns = []; this.ticks = []; this.words = []; this.calls = []; this.levels = []; this.faults = [];
    this.cues = new Map();
  }

  colors() {
    const style = getComputedStyle(document.documentElement);
    this.color = Object.fromEntries(["ground", "raised", "ink", "faint", "line", "speech", "cue", "call", "error"].map(
      (name) => [name, style.getPropertyValue(`--${name}`).trim()]));
    this.draw();
  }

  // What happens; times in s of output.

  begin(atS, text) {
    this.back = 0;
    this.turns.push({ atS, text });
  }

  text(atS) { this.ticks.push(atS); }

  word(atS, text) { this.words.push({ atS, text: text.trim() }); }

  call(atS, name) { this.calls.push({ name, startS: atS, argumentsS: null, endS: null, outcome: "" }); }

  argumentsComplete(atS, name, status) {
    const call = this.calls.find((each) => each.name === name && each.argumentsS === null && each.endS === null);
    if (!call) { return; }
    call.argumentsS = atS;
    if (status !== "ok") { call.endS = atS; call.outcome = "error"; }
  }

  result(atS, name, isError) {
    const call = this.calls.find((each) => each.name === name && each.endS === null);
    if (call) { call.endS = atS; call.outcome = isError ? "error" : "ok"; }
  }

  cue({ number, cue, start_s: startS, end_s: endS }) {
    if (endS !== null && endS <= startS) { this.cues.delete(number); } else { this.cues.set(number, { cue, startS, endS }); }
  }

  fault(atS) { this.faults.push(atS); }

  end(atS) {
    for (const call of this.calls) { call.endS ??= atS; }
    for (const cue of this.cues.values()) { cue.endS = Math.min(cue.endS ?? atS, Math.max(atS, cue.startS)); }
  }

  level(atS, lengthS, mixed, speech) {
    this.levels.push({ atS, lengthS, mixed: decibels(mixed), speech: decibels(speech) });
    if (this.levels.length > KEPT_FRAMES) { this.levels.splice(0, KEPT_FRAMES / 5); }
  }

  // The picture.

  show(nowS) {
    const state = `${nowS} ${this.levels.length} ${this.turns.length} ${this.calls.length} ${this.cues.size}`;
    if (state === this.shown) { return; }
    this.shown = state;
    this.now = nowS;
    this.draw();
  }

  get pxPerS() { return this.canvas.clientWidth < 600 ? 85 : 120; }

  draw() {
    const { canvas } = this, ratio = devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width) { return; }
    if (canvas.width !== Math.round(width * ratio)) { canvas.width = Math.round(width * ratio); }
    if (canvas.height !== Math.round(height * ratio)) { canvas.height = Math.round(height * ratio); }
    const pen = this.pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.textBaseline = "middle";
    const left = width < 600 ? 52 : 66;
    // Up to 15 % of the width shows what is known and not heard yet.
    const nowX = left + Math.min((width - left) * 0.85, this.now * this.pxPerS);
    const originS = Math.max(0, this.now - (nowX - left) / this.pxPerS - this.back);
    const view = { left, width, height, originS, endS: originS + (width - left) / this.pxPerS };
    view.x = (atS) => left + (atS - originS) * this.pxPerS;
    const rows = { model: [22, 70], words: [72, 112], cues: [116, 142], level: [148, height - 22] };
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, width - left, height);
    pen.clip();
    this.drawAxis(view, rows);
    this.drawCues(view, rows);
    this.drawLevels(view, rows.level);
    this.drawCalls(view, rows.model);
    this.drawWords(view, rows.words);
    this.drawTurns(view);
    pen.fillStyle = this.color.ink;
    pen.fillRect(view.x(this.now) - 0.75, 18, 1.5, height - 38);
    pen.restore();
    this.drawNames(rows);
  }

  // `text`, cut to `room` px; nothing if hardly a letter has room.
  fitted(text, room) {
    const fits = (length) => this.pen.measureText(length < text.length ? `${text.slice(0, length)}…` : text).width <= room;
    let length = text.length;
    while (length > 1 && !fits(length)) { length -= 1; }
    return length === text.length ? text : length > 1 ? `${text.slice(0, length)}…` : "";
  }

  font(size, weight = "") { this.pen.font = `${weight} ${size}px system-ui, "DejaVu Sans", sans-serif`; }

  drawNames(rows) {
    this.font(12);
    this.pen.fillStyle = this.color.faint;
    this.pen.textAlign = "right";
    const left = this.canvas.clientWidth < 600 ? 47 : 58;
    for (const [name, [top, bottom]] of Object.entries(rows)) {
      if (name === "level") {
        for (const level of [-20, -40]) {
          this.pen.fillText(`−${-level} dB`, left, bottom - (bottom - top) * (1 - level / FLOOR_DB));
        }
      } else {
        this.pen.fillText(name, left, (top + bottom) / 2);
      }
    }
  }

  drawAxis({ x, originS, endS, height, left, width }, rows) {
    const { pen, color } = this;
    this.font(11);
    pen.textAlign = "center";
    for (let second = Math.floor(originS); second <= endS; second++) {
      pen.fillStyle = color.line;
      pen.fillRect(x(second), 18, 1, height - 38);
      pen.fillStyle = color.faint;
      if (x(second) >= left - 1) { pen.fillText(`${second} s`, Math.max(x(second), left + 10), height - 10); }
    }
    for (const [top] of Object.values(rows)) {
      pen.fillStyle = color.line;
      pen.fillRect(left, top - 2, width, 1);
    }
    for (const level of [-20, -40]) {
      const [top, bottom] = rows.level;
      const y = bottom - (bottom - top) * (1 - level / FLOOR_DB);
      pen.fillStyle = color.line;
      pen.fillRect(left, y, width, 1);
    }
  }

  drawCues({ x, originS, endS, height }, { cues: [top, bottom] }) {
    const { pen, color } = this;
    const cues = [...this.cues.values()].sort((a, b) => a.startS - b.startS);
    for (const [k, { cue, startS, endS: ends }] of cues.entries()) {
      const until = ends ?? Math.max(this.now, startS) + 0.1;
      if (until < originS || startS > endS) { continue; }
      const from = x(startS), width = Math.max(3, x(until) - from);
      const ink = cue.startsWith("error") ? color.error : color.cue;
      pen.fillStyle = ink;
      pen.globalAlpha = 0.13;
      pen.fillRect(from, 18, width, height - 38);
      pen.globalAlpha = 1;
      pen.fillRect(from, top + 2, width, bottom - top - 4);
      this.font(12, "600");
      pen.textAlign = "left";
      const inside = pen.measureText(cue).width + 8 < width;
      pen.fillStyle = inside ? color.ground : ink;
      const at = inside ? from + 4 : from + width + 4;
      pen.fillText(this.fitted(cue, x(cues[k + 1]?.startS ?? Infinity) - at - 4), at, (top + bottom) / 2);
    }
  }

  drawLevels({ x, originS, endS }, [top, bottom]) {
    const { pen, color } = this;
    const heightOf = (level) => ((level - FLOOR_DB) / -FLOOR_DB) * (bottom - top);
    for (let at = this.levels.length - 1; at >= 0; at--) {
      const { atS, lengthS, mixed, speech } = this.levels[at];
      if (atS + lengthS < originS) { break; }
      if (atS > endS) { continue; }
      pen.globalAlpha = atS > this.now ? 0.45 : 1;
      const width = Math.max(1, lengthS * this.pxPerS + 0.3);
      const whole = heightOf(mixed), spoken = heightOf(Math.min(speech, mixed));
      pen.fillStyle = color.cue;
      pen.fillRect(x(atS), bottom - whole, width, whole - spoken);
      pen.fillStyle = color.speech;
      pen.fillRect(x(atS), bottom - spoken, width, spoken);
    }
    pen.globalAlpha = 1;
  }

  drawCalls({ x, originS, endS }, [top, bottom]) {
    const { pen, color } = this;
    pen.fillStyle = color.faint;
    for (const atS of this.ticks) {
      if (atS >= originS && atS <= endS) { pen.fillRect(x(atS), bottom - 10, 1.5, 9); }
    }
    const taken = [], lanes = this.calls.map(({ startS, endS: ends }) => {
      const free = taken.findIndex((untilS) => untilS <= startS), row = free < 0 ? taken.length : free;
      taken[row] = ends ?? this.now;
      return row % 2;
    });
    for (const [k, { name, startS, argumentsS, endS: ends, outcome }] of this.calls.entries()) {
      const until = ends ?? this.now;
      if (until < originS || startS > endS) { continue; }
      const y = top + 2 + lanes[k] * 17, from = x(startS), width = Math.max(4, x(until) - from);
      const ink = outcome === "error" ? color.error : color.call;
      pen.strokeStyle = pen.fillStyle = ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(from, y, width, 15);
      if (argumentsS) {  // filled while the tool runs
        pen.globalAlpha = 0.25;
        pen.fillRect(x(argumentsS), y, Math.max(0, x(until) - x(argumentsS)), 15);
        pen.globalAlpha = 1;
      }
      this.font(11, "600");
      pen.textAlign = "left";
      const mark = { ok: " ✓", error: " ✗" }[outcome] ?? (ends ? "" : " …"), at = Math.max(from, x(originS)) + 5;
      const next = this.calls.find((_, later) => later > k && lanes[later] === lanes[k]);
      pen.fillText(this.fitted(name + mark, x(next?.startS ?? Infinity) - at - 4), at, y + 8);
    }
  }

  drawWords({ x, originS, endS }, [top, bottom]) {
    const { pen, color } = this;
    this.font(12.5);
    pen.textAlign = "left";
    const free = new Array(WORD_ROWS).fill(-Infinity), step = (bottom - top) / WORD_ROWS;
    for (const [k, { atS, text }] of this.words.entries()) {
      if (atS < originS - 5 || atS > endS) { continue; }
      const from = x(atS), width = pen.measureText(text).width;
      const order = [...free.keys()].map((row) => (k + row) % WORD_ROWS);
      const row = order.find((each) => free[each] <= from) ?? order.reduce((a, b) => (free[a] <= free[b] ? a : b));
      const at = Math.max(from, free[row]);
      free[row] = at + width + 5;
      if (at + width < x(originS)) { continue; }
      pen.fillStyle = atS <= this.now ? color.ink : color.faint;
      pen.fillText(text, at, top + (row + 0.5) * step);
    }
  }

  drawTurns({ x, originS, endS, height }) {
    const { pen, color } = this;
    this.font(11.5, "600");
    pen.textAlign = "left";
    for (const [k, { atS, text }] of this.turns.entries()) {
      const next = x(this.turns[k + 1]?.atS ?? Infinity);
      if (next < x(originS) || atS > endS) { continue; }
      pen.fillStyle = color.faint;
      pen.fillRect(x(atS), 2, 1.5, height - 22);
      pen.fillText(this.fitted(`“${text}”`, next - x(atS) - 9), x(atS) + 5, 9);
    }
    pen.fillStyle = color.error;
    for (const atS of this.faults) {
      if (atS >= originS && atS <= endS) { pen.fillRect(x(atS) - 1, 18, 2, height - 38); }
    }
  }
}
