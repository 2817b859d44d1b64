// The page's sound over WebRTC, with `cues live --pipeline fastrtc`. FastRTC wants a microphone and a data channel: it gets
// silence, and an empty one.
"use strict";

const FADE_TIME_S = 0.005, REPORT_MS = 60;

class Call {
  // `send` sends the offer, `report` gets the state of the sound, `lost` is called when the connection is.
  constructor(send, report, lost) {
    Object.assign(this, { send, report, lost });
    this.context = new AudioContext();
    this.peer = new RTCPeerConnection();
    this.gain = new GainNode(this.context);
    this.meter = new AnalyserNode(this.context, { fftSize: 4096 });
    this.audio = new Audio();
    this.waitingS = this.emitted = this.delayS = this.concealedS = 0;
  }

  async start() {
    const { context, peer } = this;
    await context.resume();
    peer.addTrack(context.createMediaStreamDestination().stream.getAudioTracks()[0]);
    peer.createDataChannel("text");
    const arrived = new Promise((done) => { peer.ontrack = ({ track }) => done(new MediaStream([track])); });
    const gathered = new Promise((done) => {
      peer.onicecandidate = ({ candidate }) => { if (!candidate) { done(); } };
    });
    await peer.setLocalDescription(await peer.createOffer());
    await gathered;
    this.send({ type: "offer", sdp: peer.localDescription.sdp });
    const sdp = await new Promise((done) => { this.take = done; });
    peer.onconnectionstatechange = () => {
      if (["failed", "disconnected"].includes(peer.connectionState)) { this.lost(); }
    };
    await peer.setRemoteDescription({ type: "answer", sdp });
    // Browsers give a remote sound to WebAudio while an element plays it.
    this.audio.muted = true;
    this.audio.srcObject = await arrived;
    await this.audio.play();
    context.createMediaStreamSource(this.audio.srcObject).connect(this.gain).connect(this.meter);
    this.meter.connect(context.destination);
    this.watching = setInterval(() => this.look(), REPORT_MS);
  }

  // Fade out here, before the server knows of it.
  silence() { this.gain.gain.setTargetAtTime(0, this.context.currentTime, FADE_TIME_S); }

  sound() { this.gain.gain.setTargetAtTime(1, this.context.currentTime, FADE_TIME_S); }

  async look() {
    const samples = new Float32Array(this.meter.fftSize);
    this.meter.getFloatTimeDomainData(samples);
    const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
    for (const stats of (await this.peer.getStats()).values()) {
      if (stats.type !== "inbound-rtp") { continue; }
      const emitted = stats.jitterBufferEmittedCount - this.emitted;
      if (emitted > 0) { this.waitingS = (stats.jitterBufferDelay - this.delayS) / emitted; }
      this.emitted = stats.jitterBufferEmittedCount;
      this.delayS = stats.jitterBufferDelay;
      this.concealedS = (stats.concealedSamples - stats.silentConcealedSamples) / 48000;
    }
    this.report({ peak, waitingS: this.waitingS, concealedS: this.concealedS });
  }

  close() {
    clearInterval(this.watching);
    this.peer.close();
    this.context.close();
  }
}
