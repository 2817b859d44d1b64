"use strict";
(() => {
  const players = [...document.querySelectorAll("audio")];
  const cards = [...document.querySelectorAll(".card")];
  const status = document.querySelector(".status");
  let current = -1;

  const say = (text) => { status.textContent = text; };
  const nameOf = (player) => player.getAttribute("aria-label") || player.parentElement.textContent.trim();

  const stop = (except) => {
    for (const player of players) {
      if (player !== except && !player.paused) { player.pause(); }
    }
  };

  // The line over the picture goes along with the sound that the picture shows.
  const follow = (player) => {
    const picture = player.closest(".column")?.querySelector(".picture");
    if (!picture || player.dataset.key !== "p") { return; }
    const line = picture.querySelector(".playhead");
    const left = Number(picture.dataset.left), width = Number(picture.dataset.width);
    const step = () => {
      const x = left + width * Math.min(1, player.currentTime / (player.duration || 1));
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
      picture.classList.toggle("playing", !player.paused);
      if (!player.paused) { requestAnimationFrame(step); }
    };
    step();
  };

  for (const player of players) {
    player.addEventListener("play", () => { stop(player); say(`Playing: ${nameOf(player)}`); follow(player); });
    player.addEventListener("ended", () => { say(""); });
    player.addEventListener("error", () => { say(`Cannot play: ${nameOf(player)}`); });
  }

  const go = (step) => {
    current = Math.max(0, Math.min(cards.length - 1, current < 0 ? 0 : current + step));
    cards[current].focus();
    cards[current].scrollIntoView({ block: "nearest" });
  };

  // Again the same key: the same sound of the set beside it.
  const play = (key) => {
    const card = cards[Math.max(0, current)];
    const own = [...card.querySelectorAll(`audio[data-key="${key}"]`)];
    if (!own.length) { return; }
    const last = Number(card.dataset[key] ?? own.length - 1);
    const next = (last + 1) % own.length;
    card.dataset[key] = next;
    own[next].currentTime = 0;
    own[next].play().catch((error) => say(`Cannot play: ${error.message}`));
  };

  const actions = {
    j: () => go(1), k: () => go(-1), p: () => play("p"), o: () => play("o"), t: () => play("t"),
    Escape: () => { stop(); say(""); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) { return; }
    if (event.key in actions) { event.preventDefault(); actions[event.key](); }
  });

  document.addEventListener("focusin", (event) => {
    const card = event.target.closest(".card");
    if (card) { current = cards.indexOf(card); }
  });

  const changes = document.body.dataset.reload;
  if (changes) {
    new EventSource(changes).addEventListener("changed", () => { location.reload(); });
  }
})();
