// A line that is gone without a word: a network that was switched, a computer that slept. TCP alone would find out
// after a quarter of an hour of typing, or never.

/** The server pings every half minute. */
const SILENT_MS = 95_000;
const CHECK_MS = 5_000;

interface Line {
  isPaused: boolean;
  on(event: 'ping' | 'message', listener: () => void): unknown;
  terminate(): void;
}

/** Cuts the connection off where nothing has come for so long. @returns what ends the watch */
export function watchSilence(line: Line): () => void {
  let heardAt = Date.now();
  const hear = (): void => void (heardAt = Date.now());
  line.on('ping', hear);
  line.on('message', hear);
  const timer = setInterval(() => {
    // What waits for a slow reader here is not silence.
    if (line.isPaused) hear();
    else if (Date.now() - heardAt > SILENT_MS) line.terminate();
  }, CHECK_MS);
  return () => clearInterval(timer);
}
