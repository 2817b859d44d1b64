// Plays the frames of `cues live`: what the mixer wrote leaves here unchanged, unless the page falls behind.
"use strict";

const LONGEST_S = 0.5, MARGIN_S = 0.04;  // jitter buffer depth: at most, and beyond the latest frame: one frame, three quanta
const LATE_S = 0.25;  // silence is skipped while more than this waits beyond the depth
const FADE_S = 0.02;
const REPORT_QUANTA = 12;
const HEADER_BYTES = 16;

class Player extends AudioWorkletProcessor {
  constructor({ processorOptions }) {
    super();
    this.depth = this.first = processorOptions.depthS * sampleRate;
    this.filled = 0;  // the depth when playing began
    this.arrival = { turn: 0, earliest: 0, latest: 0 };  // of its frames, in samples of output less their positions
    this.last = 0;  // sample played
    this.underruns = 0;
    this.mutedUntil = 0;  // frames of turns up to this one are dropped
    this.turn = this.position = this.peak = this.quanta = 0;
    this.clear();
    this.port.onmessage = ({ data }) => {
      if (data.frames) { data.frames.onmessage = (message) => this.take(message.data); }
      if (data.stop !== undefined) { this.stop(data.stop); }
      if (data.restart) { this.mutedUntil = this.arrival.turn = 0; }  // a new conversation counts its turns from 1
    };
  }

  clear() {
    this.frames = [];
    this.offset = 0;  // samples of the first frame that were played
    this.waiting = 0;  // samples
    this.state = "idle";  // idle, filling, playing, fading
    this.rises = false;  // fade in after an underrun
  }

  // A frame: turn, position, two levels (4 bytes each), samples. Without samples, it ends the turn.
  take(data) {
    const header = new DataView(data);
    const turn = header.getUint32(0, true);
    if (turn <= this.mutedUntil) { return; }
    const samples = new Float32Array(data, HEADER_BYTES);
    if (samples.length) {
      const position = header.getUint32(4, true);
      this.measure(turn, currentFrame - position);
      this.frames.push({ turn, position, samples, isLast: false });
      this.waiting += samples.length;
      if (this.state === "idle") { this.state = "filling"; }
    } else if (this.frames.length) {
      this.frames[this.frames.length - 1].isLast = true;
    } else {
      this.clear();
    }
  }

  // The depth follows how late frames are: it grows with the latest one of the turn, and shrinks from turn to turn.
  measure(turn, offset) {
    const of = this.arrival;
    if (of.turn !== turn) {
      this.depth = Math.max(this.first, Math.min(this.depth, of.latest - of.earliest + MARGIN_S * sampleRate));
      Object.assign(of, { turn, earliest: offset, latest: offset });
    }
    of.earliest = Math.min(of.earliest, offset);
    of.latest = Math.max(of.latest, offset);
    const wanted = Math.min(of.latest - of.earliest + MARGIN_S * sampleRate, LONGEST_S * sampleRate);
    this.depth = Math.max(this.depth, wanted);
  }

  // Fade out what plays, and drop the frames of turns up to `turn`.
  stop(turn) {
    this.mutedUntil = Math.max(this.mutedUntil, turn);
    if (this.state === "playing") {
      this.left = this.fade = Math.min(Math.round(FADE_S * sampleRate), this.waiting);
      this.state = "fading";
    } else if (this.state === "filling") {
      this.dropMuted();
    }
  }

  dropMuted() {
    const later = this.frames.filter((frame) => frame.turn > this.mutedUntil);
    this.clear();
    this.frames = later;
    this.waiting = later.reduce((sum, frame) => sum + frame.samples.length, 0);
    if (later.length) { this.state = "filling"; }
  }

  get hasEnd() { return this.frames.some((frame) => frame.isLast); }

  process(_, [[out]]) {
    if (this.state === "filling" && (this.waiting >= this.depth || this.hasEnd)) {
      this.state = "playing";
      this.filled = this.depth;
      this.last = 0;
    }
    if (this.state === "playing") { this.play(out); } else if (this.state === "fading") { this.fadeOut(out); }
    this.report(out);
    return true;
  }

  play(out) {
    this.catchUp(out.length);
    if (this.filled < this.depth && this.last === 0 && this.frameIsSilent && !this.hasEnd) {
      this.state = "filling";  // Wait for a deeper buffer where nobody hears it.
      return;
    }
    const runsDry = this.waiting < 2 * out.length && !this.hasEnd;
    const n = Math.min(out.length, this.waiting);
    let isHeard = this.last !== 0;
    for (let i = 0; i < n && this.state === "playing"; i++) {
      const gain = (this.rises ? (i + 1) / out.length : 1) * (runsDry ? 1 - (i + 1) / n : 1);
      this.last = this.next();
      isHeard ||= this.last !== 0;
      out[i] = gain * this.last;
    }
    this.rises = false;
    if (runsDry) {  // Silent before the last sample; then wait until the buffer is full again.
      this.underruns += isHeard;  // In silence nothing is missing.
      this.state = "filling";
      this.rises = isHeard;
    }
  }

  get frameIsSilent() { return this.frames[0]?.samples.subarray(this.offset).every((sample) => sample === 0); }

  fadeOut(out) {
    for (let i = 0; i < out.length && this.left > 0; i++) {
      this.left -= 1;
      out[i] = this.next() * (0.5 - 0.5 * Math.cos((Math.PI * this.left) / this.fade));
    }
    if (this.left <= 0) { this.dropMuted(); }
  }

  next() {
    const frame = this.frames[0];
    const sample = frame.samples[this.offset];
    this.offset += 1;
    this.waiting -= 1;
    this.position = frame.position + this.offset;
    this.turn = frame.turn;
    if (this.offset === frame.samples.length) {
      this.frames.shift();
      this.offset = 0;
      if (frame.isLast && this.state === "playing") { this.state = this.frames.length ? "filling" : "idle"; }
    }
    return sample;
  }

  // After a stall, whole silent frames are skipped until the sound is on time.
  catchUp(quantum) {
    while (this.offset === 0 && this.waiting > this.depth + LATE_S * sampleRate && this.frameIsSilent) {
      const { samples, isLast } = this.frames[0];
      if (isLast || this.waiting < samples.length + 2 * quantum) { return; }
      this.frames.shift();
      this.waiting -= samples.length;
    }
  }

  report(out) {
    for (const sample of out) { this.peak = Math.max(this.peak, Math.abs(sample)); }
    this.quanta += 1;
    if (this.quanta % REPORT_QUANTA) { return; }
    const { state, turn, position, underruns, peak } = this;
    const waitingS = this.waiting / sampleRate, depthS = this.depth / sampleRate;
    this.port.postMessage({ state, turn, position, underruns, peak, waitingS, depthS });
    this.peak = 0;
  }
}

registerProcessor("cues-player", Player);
