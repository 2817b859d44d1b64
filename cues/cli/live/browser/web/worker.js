// The WebSocket of `cues live`, in a thread of its own: drawing never delays sound.
"use strict";

const FIRST_WAIT_MS = 300, LONGEST_WAIT_MS = 5000;
const LEVELS = 5;  // frames whose levels are one message to the page
let url = "", player = null, socket = null, wait = FIRST_WAIT_MS;
let levels = [];
let beginning = null;  // arrival and position of the earliest frame of the turn

onmessage = ({ data }) => {
  if (data.frames) { player = data.frames; }
  if (data.url) { url = data.url; connect(); }
  if (data.send && socket?.readyState === WebSocket.OPEN) { socket.send(JSON.stringify(data.send)); }
};

function connect() {
  socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => { wait = FIRST_WAIT_MS; };
  socket.onmessage = ({ data }) => {
    if (typeof data === "string") { sendLevels(); postMessage({ event: JSON.parse(data) }); } else { takeFrame(data); }
  };
  socket.onclose = ({ reason }) => {
    postMessage({ closed: true, reason, waitMs: wait });
    setTimeout(connect, wait);
    wait = Math.min(2 * wait, LONGEST_WAIT_MS);
  };
}

function takeFrame(data) {
  const header = new DataView(data);
  const turn = header.getUint32(0, true), position = header.getUint32(4, true);
  const samples = (data.byteLength - 16) / 4;
  const now = performance.now() / 1000;
  // How much later than the earliest frame of its turn, measured on the sound's own time.
  const offsetS = now - position / 24000;
  if (beginning?.turn !== turn || offsetS < beginning.offsetS) { beginning = { turn, offsetS }; }
  levels.push({ position, samples, mixed: header.getFloat32(8, true), speech: header.getFloat32(12, true),
    lateS: offsetS - beginning.offsetS });
  if (levels.length >= LEVELS) { sendLevels(); }
  player?.postMessage(data, [data]);
}

function sendLevels() {
  if (levels.length) { postMessage({ levels }); }
  levels = [];
}
