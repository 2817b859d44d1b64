"use strict";
(() => {
  const MAGMA = ["000004", "180f3d", "440f76", "721f81", "9e2f7f", "cd4071", "f1605d", "fd9668", "feca8d", "fcfdbf"];
  const WAVE_PX = 92, SPECTROGRAM_PX = 150, FLOOR_DB = -60, METER_S = 0.05;
  const data = JSON.parse(document.getElementById("sounds").textContent);
  const status = document.querySelector(".status");
  const say = (text) => { status.textContent = text; };

  // Samples.

  const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const samplesOf = (text) => Float32Array.from(new Int16Array(bytesOf(text).buffer), (value) => value / 32767);
  const cached = (make) => { let made; return () => (made ??= make()); };
  const under = { speech: cached(() => samplesOf(data.speech)), phone: cached(() => samplesOf(data.phone)) };

  function padded(samples, length) {
    const longer = new Float32Array(length);
    longer.set(samples.subarray(0, length));
    return longer;
  }

  // What is heard of a sound: alone (a loop twice), over the speech, or through a telephone.
  function heard(sound, mode) {
    if (sound.changes) {  // of the minute's speech
      const whole = samplesOf(data.minute.speech);
      for (const { at, samples } of sound.changes) { whole.set(samplesOf(samples), at); }
      return { samples: whole, rate: data.minute.rate };
    }
    if (mode !== "alone") {
      const { at, length, samples } = sound[mode];
      const whole = padded(under[mode](), length);
      whole.set(samplesOf(samples), at);
      return { samples: whole, rate: mode === "phone" ? data.phoneRate : data.rate };
    }
    const once = samplesOf(sound.alone);
    const turns = padded(once, sound.loop ? 2 * once.length : once.length);
    if (sound.loop) { turns.set(once, once.length); }
    return { samples: turns, rate: data.rate };
  }

  function wavOf(samples, rate) {
    const header = new DataView(new ArrayBuffer(44));
    const text = (at, letters) => [...letters].forEach((letter, k) => header.setUint8(at + k, letter.charCodeAt(0)));
    const bytes = 2 * samples.length;
    text(0, "RIFF"); header.setUint32(4, 36 + bytes, true); text(8, "WAVEfmt ");
    header.setUint32(16, 16, true); header.setUint16(20, 1, true); header.setUint16(22, 1, true);
    header.setUint32(24, rate, true); header.setUint32(28, 2 * rate, true);
    header.setUint16(32, 2, true); header.setUint16(34, 16, true);
    text(36, "data"); header.setUint32(40, bytes, true);
    return new Blob([header, Int16Array.from(samples, (value) => Math.round(32767 * value))], { type: "audio/wav" });
  }

  // Pictures.

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const colorMap = Array.from({ length: 256 }, (_, k) => {
    const at = (k / 255) * (MAGMA.length - 1), low = Math.min(Math.floor(at), MAGMA.length - 2);
    const channel = (hex, c) => parseInt(hex.slice(2 * c, 2 * c + 2), 16) / 255;
    return [0, 1, 2].map((c) => channel(MAGMA[low], c) * (1 - at + low) + channel(MAGMA[low + 1], c) * (at - low)).concat(1);
  });

  function axisOf(lengthS) {
    const axis = Object.assign(document.createElement("div"), { className: "axis" });
    const step = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10].find((each) => lengthS / each <= 6) ?? 20;
    for (let at = 0; at < lengthS - step / 2; at += step) { axis.append(tick(at, lengthS)); }
    axis.append(tick(lengthS, lengthS));
    return axis;
  }

  function tick(at, lengthS) {
    const text = lengthS < 1.5 ? `${Math.round(1000 * at)}` : `${Number(at.toFixed(2))}`;
    const label = Object.assign(document.createElement("span"), { textContent: text });
    if (at === lengthS) { label.textContent += lengthS < 1.5 ? " ms" : " s"; }
    label.style.left = `${(100 * at) / lengthS}%`;
    return label;
  }

  // One sound in one set: its picture, and the player that wavesurfer.js drives.
  class Pane {
    constructor(card, section, sound) {
      Object.assign(this, { card, section, sound, box: section.querySelector(".picture"), mode: "", player: null });
    }

    // Draw and load a mode; `lengthS` and `reach` are shared by the panes of a card, so that their axes are equal.
    async show(mode, lengthS, reach) {
      this.mode = mode;
      const { samples, rate } = heard(this.sound, mode);
      this.rate = rate;
      this.samples = padded(samples, Math.round(lengthS * rate));
      this.player?.destroy();
      this.box.replaceChildren();
      const player = this.player = WaveSurfer.create({
        container: this.box, cspNonce: document.querySelector("style").nonce, height: WAVE_PX, barHeight: 1 / reach, sampleRate: rate, cursorWidth: 2, cursorColor: "#2fa4ff",
        waveColor: css(mode === "alone" ? "cue" : "speech"), progressColor: css(mode === "alone" ? "cue" : "speech"),
        plugins: [WaveSurfer.Spectrogram.create({
          height: SPECTROGRAM_PX, labels: true, scale: "logarithmic", frequencyMin: 100, frequencyMax: rate / 2,
          fftSamples: rate < 16000 ? 256 : 512, noverlap: rate < 16000 ? 224 : 448, gainDB: 10, rangeDB: 70, colorMap,
          labelsBackground: "transparent", labelsColor: "#ffffff", labelsHzColor: "#ffffff",
        })],
      });
      player.on("play", () => this.card.changed(this));
      player.on("pause", () => this.card.changed(this));
      player.on("finish", () => this.card.changed(this));
      player.on("interaction", () => this.card.choose(this));
      player.on("error", (error) => say(`Cannot play: ${error?.message ?? error}`));
      const ready = new Promise((done) => player.once("ready", done));
      await player.loadBlob(wavOf(this.samples, rate), [this.samples], this.samples.length / rate);
      await ready;
      this.mark(lengthS);
      this.box.append(axisOf(lengthS));
      const label = Object.assign(document.createElement("span"), { className: "reach", textContent: `±${reach.toFixed(2)}` });
      this.box.append(label);
    }

    mark(lengthS) {
      const span = (kind, fromS, toS, text) => {
        const element = Object.assign(document.createElement("span"), { className: `mark ${kind}`, textContent: text });
        element.style.left = `${(100 * fromS) / lengthS}%`;
        if (toS) { element.style.width = `${(100 * Math.min(toS - fromS, lengthS - fromS)) / lengthS}%`; }
        this.box.append(element);
      };
      if (this.mode !== "alone") { span("cue", this.sound.onsetS, this.sound.onsetS + this.lengthS("alone"), ""); }
    }

    lengthS(mode) {
      const { samples, rate } = heard(this.sound, mode);
      return samples.length / rate;
    }

    reach(mode) { return heard(this.sound, mode).samples.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-4); }

    // The place in the sound, s after the cue's onset, in every mode.
    get place() { return (this.player?.getCurrentTime() ?? 0) - (this.mode === "alone" ? 0 : this.sound.onsetS); }

    set place(atS) {
      const lengthS = this.player.getDuration();
      this.player.setTime(Math.min(Math.max(0, atS + (this.mode === "alone" ? 0 : this.sound.onsetS)), lengthS));
    }

    level() {
      const at = Math.round(this.player.getCurrentTime() * this.rate), n = Math.round(METER_S * this.rate);
      const part = this.samples.subarray(Math.max(0, at - n), at);
      return 20 * Math.log10(Math.sqrt(part.reduce((sum, value) => sum + value * value, 0) / n) + 1e-6);
    }
  }

  // A sound begins after its picture is drawn, and only if nothing else was asked for meanwhile.
  let latestWish = 0;

  class Card {
    constructor(element, sounds) {
      this.element = element;
      this.name = element.querySelector("h2, h3").textContent;
      const sections = [...element.querySelectorAll(".column")];
      this.panes = sections.map((section, set) => new Pane(this, section, sounds[set]));
      this.active = this.panes[0];
      this.mode = "alone";
      this.drawn = null;
      element.querySelector(".play").addEventListener("click", () => this.toggle());
      this.modes = [...element.querySelectorAll("[data-mode]")];
      this.sets = [...element.querySelectorAll("[data-set]")];
      for (const button of this.modes) { button.addEventListener("click", () => this.setMode(button.dataset.mode)); }
      for (const button of this.sets) { button.addEventListener("click", () => this.choose(this.panes[button.dataset.set])); }
    }

    get playing() { return Boolean(this.active.player?.isPlaying()); }

    // The pictures of the present mode, with equal axes.
    draw() {
      const { mode } = this;
      this.drawn ??= (async () => {
        const lengthS = Math.max(...this.panes.map((pane) => pane.lengthS(mode)));
        const reach = 1.05 * Math.max(...this.panes.map((pane) => pane.reach(mode)));
        await Promise.all(this.panes.map((pane) => pane.show(mode, lengthS, reach)));
      })();
      return this.drawn;
    }

    async setMode(mode, wish) {
      if (!this.modes.some((button) => button.dataset.mode === mode) || mode === this.mode) { return; }
      const { playing } = this, { place } = this.active, isFresh = !playing && this.active.player?.getCurrentTime() === 0;
      if (playing) { wish ??= ++latestWish; }
      this.mode = mode;
      this.drawn = null;
      for (const button of this.modes) { button.setAttribute("aria-pressed", button.dataset.mode === mode); }
      await this.draw();
      if (!isFresh) { this.active.place = place; }
      if (playing && wish === latestWish) { await this.play(wish); }
    }

    async choose(pane) {
      if (pane === this.active) { return; }
      const { playing } = this, place = this.active.place, wish = playing ? ++latestWish : 0;
      this.active.player?.pause();
      this.active = pane;
      this.panes.forEach((each, set) => {
        each.section.classList.toggle("active", each === pane);
        this.sets[set]?.setAttribute("aria-pressed", each === pane);
      });
      await this.draw();
      pane.place = place;
      if (playing && wish === latestWish) { await this.play(wish); }
    }

    async play(wish = ++latestWish) {
      pauseAll(this);
      await this.draw();
      if (wish === latestWish) { await this.start(); }
    }

    async start() {
      await this.active.player.play().catch((error) => say(`Cannot play: ${error.message}`));
    }

    toggle() { if (this.playing) { stop(); } else { this.play(); } }

    changed(pane) {
      if (pane !== this.active) { return; }
      const { playing } = this;
      this.element.classList.toggle("playing", playing);
      this.element.querySelector(".play").setAttribute("aria-label", `${playing ? "Pause" : "Play"} ${this.name}`);
      const heardAs = this.modes.find((button) => button.dataset.mode === this.mode)?.textContent ?? "alone";
      say(playing ? `Playing: ${this.name}, ${pane.section.ariaLabel.split(", ").at(-1)}, ${heardAs}` : "");
      const step = () => {
        const level = this.playing ? Math.max(FLOOR_DB, pane.level()) : FLOOR_DB;
        const meter = this.element.querySelector(".meter");
        meter.setAttribute("aria-valuenow", Math.round(level));
        meter.firstElementChild.style.transform = `scaleX(${1 - level / FLOOR_DB})`;
        if (this.playing) { requestAnimationFrame(step); }
      };
      step();
    }
  }

  const cards = [...document.querySelectorAll(".card")].map((element, k) => new Card(element, data.cards[k]));
  let current = -1;
  const pauseAll = (except) => {
    for (const card of cards) { if (card !== except) { for (const pane of card.panes) { pane.player?.pause(); } } }
  };

  const stop = () => { latestWish += 1; pauseAll(); };

  // All pictures, from the top, so that a print has them; and anew in the colors of the other scheme.
  (async () => { for (const card of cards) { await card.draw(); } })();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const card of cards) { if (card.drawn) { card.drawn = null; card.draw(); } }
  });

  const go = (step) => {
    current = Math.max(0, Math.min(cards.length - 1, current < 0 ? 0 : current + step));
    cards[current].element.focus();
    cards[current].element.scrollIntoView({ block: "nearest" });
  };
  const here = () => cards[Math.max(0, current)];
  const playAs = async (mode) => {
    const card = here(), wish = ++latestWish;
    await card.setMode(mode, wish);
    if (wish === latestWish && !card.playing) { await card.play(wish); }
  };
  const other = () => { const { panes, active } = here(); return panes[(panes.indexOf(active) + 1) % panes.length]; };

  const actions = {
    j: () => go(1), k: () => go(-1), " ": () => here().toggle(), x: () => here().choose(other()),
    p: () => playAs("alone"), o: () => playAs("speech"), t: () => playAs("phone"), Escape: () => { stop(); say(""); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) { return; }
    if (event.key === " " && event.target.matches("button, summary, a")) { return; }
    if (event.key in actions) { event.preventDefault(); actions[event.key](); }
  });

  document.addEventListener("focusin", (event) => {
    const element = event.target.closest(".card");
    if (element) { current = cards.findIndex((card) => card.element === element); }
  });

  window.board = { cards, data };  // for tests and for the console

  const changes = document.body.dataset.reload;
  if (changes) {
    const watch = () => {
      const socket = new WebSocket(new URL(changes, location.href.replace(/^http/, "ws")));
      socket.onmessage = () => { location.reload(); };
      socket.onclose = () => { setTimeout(watch, 1000); };
    };
    watch();
  }
})();
