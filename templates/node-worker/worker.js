'use strict';

const { setTimeout: pause } = require('node:timers/promises');

// Works without an address of its own: takes a piece of work, does it, waits for the next. Its lines are in the logs of
// the application, under the process type `worker`.
const everySeconds = Math.max(Number(process.env.WORK_EVERY_SECONDS) || 10, 1);
const stop = new AbortController();
let done = 0;

process.on('SIGTERM', () => {
  stop.abort();
  console.log(`Stopping after ${done} pieces of work`);
});

console.log(`Worker started, one piece of work every ${everySeconds} s`);
void loop();

async function loop() {
  while (!stop.signal.aborted) {
    await work();
    await pause(everySeconds * 1000, null, { signal: stop.signal }).catch(() => {});
  }
}

/** Put yours here: read a queue, send mail, clean up. */
async function work() {
  const started = performance.now();
  const primes = countPrimes(200_000);
  done += 1;
  console.log(`Piece ${done}: ${primes} primes below 200000 in ${Math.round(performance.now() - started)} ms`);
}

function countPrimes(below) {
  const composite = new Uint8Array(below);
  let count = 0;
  for (let i = 2; i < below; i += 1) {
    if (composite[i]) continue;
    count += 1;
    for (let multiple = i * i; multiple < below; multiple += i) composite[multiple] = 1;
  }
  return count;
}
